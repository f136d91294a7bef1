"""The content of mails: their parts, the text that a reader sees, header fields, tokens, and features for a model.

| what | file |
|---|---|
| header fields and the tree of parts, even if damaged | `mime` |
| content within signatures, Outlook's winmail.dat and its RTF | `smime`, `tnef`, `rtf` |
| charsets, transfer encodings, encoded words | `decoding` |
| the choice among several forms of a text, and its visible part | `parts` |
| pages: elements, sheets, styles, and the texts that they hide | `html`, `sheets`, `css`, `styles`, `colors` |
| the limit of the work for a mail | `work` |
| mails that are attached to a mail | `attached` |
| the removal of marks that filters add to a mail | `markup` |
| sender, route and list in headers; fields that reveal the label | `headers`, `telling` |
| texts as tokens; disguised words | `tokens`, `disguise` |
| `MailFeatures` | `features` |
| the id of a mail, for learning it once | `ids` |
"""
