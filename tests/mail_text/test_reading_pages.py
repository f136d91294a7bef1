"""What a reader sees of mails in HTML, and what is hidden from him: a row a case."""

import pytest

from stream_pegasos.mail_text.parts import mail_parts

SEEN = {
    # What is within sets its own size, height of lines, visibility and colour.
    "a frame without gaps": '<div style="font-size:0px"><p style="font-size:13px">seen</p></div>',
    "a frame of a table": '<table style="font-size:0"><tr><td><div style="font-size:16px;line-height:1">seen',
    "a size in points": '<div style="font-size:0"><span style="font-size:9pt">seen',
    "a size in rem": '<div style="font-size:0"><span style="font-size:.8rem">seen',
    "a size by name": '<div style="font-size:0"><span style="font-size:small">seen',
    "the shorthand of a font": '<div style="font-size:0"><span style="font:italic bold 12px/30px Georgia, serif">seen',
    "a shorthand with a weight": '<p style="font:700 14px Arial">seen',
    "an old font": '<div style="font-size:0"><font size="3">seen',
    "a smaller font": '<font size="-7">seen',
    "lines of no height around": '<td style="line-height:0"><p style="line-height:20px">seen',
    "visible within hidden": '<div style="visibility:hidden"><p style="visibility:visible">seen',
    "dark within white": '<div style="color:#fff"><p style="color:#333">seen',
    "a link in white": '<div style="color:white"><a href="https://x.example">seen',
    "Bengali": '<div style="font-size:0"><p style="font-size:13px">দেখা</p></div>',
    # Names of properties that end as others do.
    "a stroke": '<p style="-webkit-text-stroke-width: 0px">seen',
    "no border": '<p style="border-width:0;border:0">seen',
    "no least height": '<p style="min-height:0;min-width:0">seen',
    "a narrow spacer": '<p style="max-width:0.5em">seen',
    "drawn to the left": '<p style="margin-left:-200px">seen',
    "an outline": '<p style="outline-color:#fff;border-color:white">seen',
    "a colour to come": '<p style="--color:#fff;caret-color:#fff">seen',
    "no letter spacing": '<p style="letter-spacing:0;padding:0;margin:0 0 0 0">seen',
    # Sizes that only look tiny.
    ".9em": '<p style="font-size:0.9em">seen',
    "1.5em": '<p style="font-size:1.5em">seen',
    ".75em": '<p style="font-size:0.75em">seen',
    "1em": '<p style="font-size:1em">seen',
    "100%": '<p style="font-size:100%">seen',
    "1.2rem": '<p style="font-size:1.2rem">seen',
    "1vw": '<p style="font-size:1vw">seen',
    "not a size": '<p style="font-size:none">seen',
    # Backgrounds.
    "white on a gradient": '<div style="background-image:linear-gradient(#000,#111);color:#fff">seen',
    "white on a picture": '<td background="dark.png"><font color="#ffffff">seen',
    "white on a picture by style": '<div style="background:url(dark.png);color:#fff">seen',
    "white on black": '<div style="background:#000 none"><p style="color:#fff">seen',
    "white on a name": '<td style="background-color:navy;color:white">seen',
    "white on rgb": '<td style="background-color:rgb(10, 20, 30);color:rgb(255,255,255)">seen',
    "white on hsl": '<td style="background:hsl(200,50%,10%);color:hsl(0,0%,100%)">seen',
    "white on a dark table": '<table bgcolor="222222"><td><font color=white>seen',
    "white on a class": "<style>.dark{background:#111}</style><div class=dark><p style='color:#fff'>seen",
    "white on an id": "<style>#top, .x{background-color:#123456}</style><div id=top><p style='color:#fff'>seen",
    "white on a tag": "<style>body{background:#000;color:#fff}</style><body><p>seen",
    "white on a cell": "<style>table.a td.b{background:#000}</style><table class=a><td class=b style='color:#fff'>seen",
    "white on what is not known": "<style>[data-x]{background:#000}</style><div data-x=1><p style='color:#fff'>seen",
    "white on a rule for Outlook": "<style>[data-ogsc] .a{background:#000}</style><p>seen",
    "a letter cut out of a picture": "<h1 style='background:linear-gradient(red,blue);color:transparent'>seen",
    "a sheet after it": "<div class=dark><font color=#fff>seen</font></div><style>.dark{background:#000}</style>",
    "a sheet in a comment": "<style><!-- .a{background:#000} --></style><p class=a style='color:#fff'>seen",
    "grey on white": '<p style="color:#eee">seen',
    "half a colour": '<p style="color:rgba(0,0,0,.5)">seen',
    # Sheets.
    "a later rule": "<style>.a{display:none}.a{display:block}</style><p class=a>seen",
    "a stronger rule": "<style>#i{display:block}.a{display:none}</style><p class=a id=i>seen",
    "a style beats a sheet": "<style>.a{display:none}</style><p class=a style='display:block'>seen",
    "important": "<p style='display:block !important;display:none'>seen",
    "another class": "<style>.a{display:none}</style><p class=ab>seen",
    "another parent": "<style>.a > .b{display:none}</style><div class=a><section><p class=b>seen</p></section></div>",
    "not within": "<style>.a .b{display:none}</style><p class=b>seen",
    "print": "<style>@media print{p{display:none}}</style><p>seen",
    "a sheet for print": "<style media=print>p{display:none}</style><p>seen",
    "a narrow screen": "<style>@media only screen and (max-width:480px){.a{display:none}}</style><p class=a>seen",
    "under the mouse": "<style>p:hover{display:none}</style><p>seen",
    "a sheet for Outlook": "<!--[if mso]><style>p{display:none}</style><![endif]--><p>seen",
    "a number without end": f"<style>.a{{width:{'9' * 5_000}px}}</style><p class=a>seen",
    "an unknown rule": "<style>p::-x-y{display:none} @font-face{src:url(x)} } p{</style><p>seen",
    "an attribute that is not there": "<style>p[data-x]{display:none}</style><p>seen",
    "another value": "<style>a[href^='https://x.'] {display:none}</style><a href='https://y.example'>seen</a>",
    "none of these": "<style>p:is(.a, [b]), :where(i, #c){display:none}</style><p class=d>seen",
    "not these": "<style>p:not(.a, [b]){display:none}</style><p class=a>seen",
    "not beside": "<style>b + p, b ~ p{display:none}</style><div><b></b></div><p>seen",
    "what no browser has": "<style>@supports (mso-x:y) {p{display:none}}</style><p>seen",
    "what each browser has": "<style>@supports not (color:red){p{display:none}}</style><p>seen",
    "signs in a comment": "<style>/* } p{display:none} { */</style><p>seen",
    "signs in a string": '<style>b:after{content:"}p{display:none}"}</style><p>seen',
    "signs in an address": "<style>b{background:url(data:x;}p{display:none})}</style><p>seen",
    "an open bracket": "<style>b:is({} p{display:none}</style><p>seen",
    "a bracket too many": "<style>b{}} i, p{display:none}</style><p>seen",
    "a selector that no browser has": "<style>p:foo(x), p, i::-y{display:none}</style><p>seen",
    "a name of digits": "<style>.1a, p{display:none}</style><p class=1a>seen",
    "no sheet": "<style type='text/less'>p{display:none}</style><p>seen",
    "not the first one": "<style>p:first-child{display:none}</style><b></b><p>seen",
    "not for screens": "<style>@media not screen{p{display:none}}</style><p>seen",
    "no value that browsers have": '<p style="display:block;display:gone;visibility:gone">seen',
    "less than nothing": '<div style="height:-5px;font-size:-1px;overflow:hidden">seen',
    "a long background": f'<p style="color:#fff;background:{"linear-gradient(red,blue)," * 60}url(x)">seen',
    "a word too many": '<p style="display:none x">seen',
    "a broken rule": "<style>b{} } p{display:none}</style><p>seen",
    "a rule within a rule": "<style>p{color:#333; i{display:none} }</style><p>seen",
    "an address in a style": '<p style="background:url(x;display:none)">seen',
    "a string in a style": """<p style='content:"; display:none"'>seen""",
    "a type of old": '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN"><div style="font-size:1">seen',
    # What does not apply.
    "no height within a line": '<span style="height:0;overflow:hidden">seen</span>',
    "no height, and over its edge": '<div style="height:0">seen</div>',
    "a cell grows": '<td style="height:0;overflow:hidden">seen',
    "clipped in its place": '<div style="clip:rect(0,0,0,0)">seen',
    "left of nothing": '<div style="left:-9999px">seen',
    "nearly clear": '<p style="opacity:.6">seen',
    "a button that Outlook has otherwise": '<a href="//x.example" style="mso-hide:all;color:#000">seen</a>',
    "what Outlook alone hides": '<!--[if !mso]><!--><div style="mso-hide:all">seen</div><!--<![endif]-->',
    "one line of no height": '<p style="line-height:0">seen',
    "narrow, and yet not": '<div style="width:1px;min-width:100%;overflow:hidden">seen',
    "low, and yet not": '<div style="height:0;min-height:20px;overflow:hidden">seen',
    "a low box with small letters": '<div style="height:12px;font-size:10px;overflow:hidden">seen',
    "a share of an unknown height": '<div style="height:1%;overflow:hidden">seen',
    "behind bold letters": "<p><b style='display:none'><p>no</p></b>seen",
    "behind a paragraph in bold letters": "<p><i style='display:none'>no</i><p>seen",
    "behind the body": "<html><body></body></html>seen",
    "a number without a unit": '<!DOCTYPE html><div style="font-size:1;height:0.1;text-indent:-9999">seen',
    "on a layer": '<div style="position:relative"><div style="position:absolute;background:#003"></div>'
    "<p style='color:#fff'>seen</p></div>",
    "a short colour of old": '<td bgcolor="#00"><font color="white">seen',
    "five digits": '<td bgcolor="#00336" style="color:white">seen',
    "no colour, but it is one": '<td bgcolor="white"><font color="chucknorris">seen',
    "cut in a declaration": '<p style="font-size:16px;display:no">seen',
    "a sheet cut in a declaration": "<p class=a>seen</p><style>.a{color:#333;display:no",
    "not for Outlook": "<!--[if !mso]><!--><p>seen</p><!--<![endif]--><!--[if mso]><p>no</p><![endif]-->",
    "revealed": "<![if !mso]><p>seen</p><![endif]>",
    "a table has its own size": '<div style="font-size:0"><table><td>seen',
    "within words": "se<b>e</b><span style='font-size:0'>no</span>n",
    "closed within a word": "se<div style='display:none'>no</div>en",
}


@pytest.mark.parametrize("name", SEEN)
def test_what_a_reader_sees_is_read(name):
    parts = mail_parts(b"Content-Type: text/html; charset=utf-8\n\n" + SEEN[name].encode())
    assert parts.text in ("seen", "দেখা")


HIDDEN = {
    "display": [
        "display : NONE",
        "DISPLAY:none!important",
        "color:red;display:none",
        "dis\\70lay:none",
        "display:/**/none",
    ],
    "visibility": ["visibility:hidden", "visibility: collapse"],
    "font-size": [
        "font-size:0",
        "font-size:1px",
        "font-size:0%",
        "font-size:.05em",
        "font:0/0 a",
        "font: 0px Arial",
        "font-size:.5pt",
        "font-size:calc(0px)",
    ],
    "line-height": ["line-height:0;overflow:hidden", "overflow-y:clip;line-height:0px"],
    "color": [
        "color:#fff",
        "color:white",
        "color:transparent",
        "color:rgba(0,0,0,0)",
        "color:rgb(255, 255, 255)",
        "color:#FFFFFE",
        "color:hsl(0 0% 100%)",
        "background:#000;color:#010101",
        "color:rgb(0 0 0 / 0%)",
        "-webkit-text-fill-color:transparent",
    ],
    "opacity": ["opacity:0", "opacity: 0.0", "opacity:0%", "opacity:.01"],
    "height": [
        "height:0;overflow:hidden",
        "height:1px;overflow-y:hidden",
        "height:7px;overflow:hidden",
        "height:12px;font-size:30px;overflow:hidden",
        "font-size:10px;height:.4em;overflow:auto",
    ],
    "max-height": [
        "max-height:0;overflow:hidden",
        "overflow:hidden;max-height:0px;max-width:0",
        "max-height:6px;height:100px;overflow:hidden",
    ],
    "width": ["width:0;overflow:hidden", "width:5px;overflow:hidden", "width:1px;min-width:2px;overflow:hidden"],
    "clip": ["position:absolute;clip:rect(0,0,0,0)", "clip: rect(1px 1px 1px 1px); position: absolute !important"],
    "clip-path": ["clip-path:inset(50%)", "clip-path:circle(0)"],
    "left": [
        "position:absolute;inset:0 0 0 -9999px",
        "position:absolute;left:-9999px",
        "position:relative;left:-999em",
    ],
    "top": ["position:fixed;top:-1000px"],
    "text-indent": ["text-indent:-9999px"],
    "margin-left": ["margin-left:-9999px", "margin:0 0 0 -9999px"],
    "transform": ["transform:scale(0)", "transform:translateX(-9999px)"],
    "filter": ["filter:opacity(0)"],
}
STYLES = [(why, style) for why, styles in HIDDEN.items() for style in styles]
WAYS = ("an attribute", "a class", "an element around it", "a selector of what is around it")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("why, style", STYLES, ids=[style for _, style in STYLES])
def test_what_is_hidden_is_told_apart(why, style, way):
    if way == "an attribute":
        markup = f'<div style="{style}">secret</div>'
    elif way == "a class":
        markup = f"<style>.q, div.z {{ {style} }}</style><div class='a z'>secret</div>"
    elif way == "an element around it":
        markup = f'<div style="{style}"><i><u>secret</u></i></div>'
    else:
        markup = (
            f"<style>#n div > .z {{ {style} }}</style><section id=n><i><div><p class='z'>secret</p></div></i></section>"
        )
    parts = mail_parts(f"Content-Type: text/html; charset=utf-8\n\n<p>seen</p>{markup}".encode())
    assert parts.text == "seen" and {"hidden:secret", f"html:hides-by-{why}"} <= set(parts.tokens)


@pytest.mark.parametrize(
    "markup, why",
    [
        ("<p hidden>secret", "hidden"),
        ("<b style='display:none'><p>secret</p>secret</b>", "display"),
        ("<h1 class=a><p>secret</p></h1><style>.a{display:none}</style>", "display"),
        ("<style>[data-x]{display:none}</style><p data-x>secret", "display"),
        ("<style>p[class~=B i]{display:none}</style><p class='a b'>secret", "display"),
        ("<style>h1 + p{display:none}</style><h1></h1><p>secret", "display"),
        ("<style>div > h1 ~ p > b{display:none}</style><div><h1></h1><i></i><p><b>secret", "display"),
        ("<style>p:not(.a):not(#i){display:none}</style><p class=b>secret", "display"),
        ("<style>@supports (display:grid) and (color:red){p{display:none}}</style><p>secret", "display"),
        ("<style>.a > .b .c{display:none}</style><i class=a><i class=b><i class=b><i class=c>secret", "display"),
        ("<p style='display:none;color:re'>secret", "display"),
        ("<style>[style*='x:none'], .q{display:none}</style><p class=q>secret", "display"),
        ("<style>p:is(.a, [b]):where(.c):not(.d){display:none}</style><p class=c b>secret", "display"),
        ("<style>p:first-child{display:none}</style><div><p>secret", "display"),
        ("<style>@media not print{p{display:none}}</style><p>secret", "display"),
        ("<p style='display:none;display:gone'>secret", "display"),
        ("<p style='visibility:hidden;visibility:gone'>secret", "visibility"),
        ("<style>.sm\\:x{display:none}</style><p class='sm:x'>secret", "display"),
        ("<style>p{x:{};display:none}</style><p>secret", "display"),
        ('<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.0 Transitional//EN"><p style="font-size:1">secret', "font-size"),
        ("<p style='font-size:1'>secret", "font-size"),
        ("<td bgcolor='#ffff'><font color='#ffff00'>secret", "color"),
        ("<style>[data-ogsc] p{background:#000}</style><p style='color:#fff'>secret", "color"),
        ("<div style='display:none'/>secret", "display"),
        ("<td bgcolor=white><font color='#ffffff'>secret", "color"),
        ("<body text=white bgcolor=#fff>secret", "color"),
        ("<td bgcolor=blue><font color='#0000FF'>secret", "color"),
        ("<table bgcolor=black><td style='color:#020202'>secret", "color"),
        ("<div style='background:url(x.png)'><p style='background:#fff;color:white'>secret", "color"),
        ("<style>p{color:#fff}</style><p>secret", "color"),
        ("<!DOCTYPE html><div style='font-size:0'><table><td>secret", "font-size"),
        ("<a href='//x.example' style='color:#fff'>secret</a>", "color"),
        ("<span style='display:inline-block;height:0;overflow:hidden'>secret</span>", "height"),
        ("<style>@media screen and (min-width:480px){.a{display:none}}</style><p class=a>secret", "display"),
        ("<div style='visibility:hidden'><div style='display:none'><p style='visibility:visible'>secret", "display"),
    ],
)
def test_other_ways_of_hiding(markup, why):
    parts = mail_parts(b"Content-Type: text/html; charset=utf-8\n\n" + markup.encode())
    assert not parts.text and {"hidden:secret", f"html:hides-by-{why}"} <= set(parts.tokens)


@pytest.mark.parametrize(
    "markup, why",
    [
        ('<td background="x.png"><font color="#fff">seen', "color"),
        ('<p style="font-size:3px">seen', "font-size"),
        ('<div style="height:0">seen</div>', "height"),
        ('<div style="height:12px;overflow:hidden">seen</div>', "height"),
        ('<p style="line-height:0">seen</p>', "line-height"),
        ('<div style="mso-hide:all">seen</div>', "mso-hide"),
        ('<div style="clip:rect(0,0,0,0)">seen', "clip"),
        ('<a href="//x.example" style="mso-hide:all">seen</a>', "mso-hide"),
    ],
)
def test_where_it_is_in_doubt_text_is_seen_and_the_doubt_is_a_token(markup, why):
    parts = mail_parts(b"Content-Type: text/html; charset=utf-8\n\n" + markup.encode())
    assert parts.text == "seen" and f"html:may-hide-by-{why}" in parts.tokens


@pytest.mark.parametrize("style", ["height:24px", "max-height:2em", "height:100px;max-height:30px"])
@pytest.mark.parametrize("tag", ["", "<br>"])
def test_of_a_low_box_the_first_lines_are_seen(style, tag):
    words = "".join(f"{tag}word{i} " for i in range(500))
    markup = f'<p>first</p><div style="{style};overflow:hidden"><b>{words}</b></div><p>last</p>'
    parts = mail_parts(b"Content-Type: text/html; charset=utf-8\n\n" + markup.encode())
    seen = parts.text.split()
    assert seen[:2] == ["first", "word0"] and seen[-1] == "last" and len(seen) < 150
    assert "html:hides-by-height" in parts.tokens


@pytest.mark.parametrize("height", [2, 5, 8, 12, 16])
def test_of_a_box_that_is_lower_than_its_letters_nothing_is_seen_if_it_has_many(height):
    markup = f'<p>first</p><div style="max-height:{height}px;overflow:hidden">{"<i>words</i> " * 300}</div><p>last</p>'
    parts = mail_parts(b"Content-Type: text/html; charset=utf-8\n\n" + markup.encode())
    assert parts.text.split() == ["first", "last"] and "hidden:words" in parts.tokens


def test_of_a_box_that_scrolls_or_grows_all_is_seen():
    for style in ("height:30px", "height:30px;overflow:auto", "height:30px;min-height:10px;overflow:hidden"):
        markup = f'<div style="{style}">{"word " * 400}</div><p>last</p>'
        parts = mail_parts(b"Content-Type: text/html; charset=utf-8\n\n" + markup.encode())
        assert parts.text.count("word") == 400
