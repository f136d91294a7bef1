"""SpamAssassin's protocol, byte by byte."""

import asyncio
import copy
import re
import zlib

import pytest
from running import is_held
from spamd_client import HAM, SPAM, Limits, LiveLearner, Verdicts, answering, ask, exchange, request

from stream_pegasos import TextClassifier
from stream_pegasos.mail.spamd import judge_mail
from stream_pegasos.mail.users import FILE, folder_name
from stream_pegasos.mail_text.ids import mail_id
from stream_pegasos.runtime.active_learning import ActiveLearning
from stream_pegasos.service.metrics import Metrics

SCORE = rb"Spam: (True|False) ; (-?\d+\.\d) / 5\.0\r\n"


def code(said):
    return int(re.match(rb"SPAMD/1\.\d (\d+) ", said)[1])


def test_each_command_is_answered_as_spamd_does(mail_model):
    commands = ["CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM", "PROCESS", "HEADERS"]
    of_spam = dict(zip(commands, ask(mail_model, *(request(each, SPAM) for each in commands)), strict=True))
    of_ham = dict(zip(commands, ask(mail_model, *(request(each, HAM) for each in commands)), strict=True))
    for said, is_spam in ((of_spam, b"True"), (of_ham, b"False")):
        assert re.fullmatch(rb"SPAMD/1\.1 0 EX_OK\r\n" + SCORE + rb"\r\n", said["CHECK"])[1] == is_spam
        scores = {re.search(SCORE, each)[0] for each in said.values()}
        assert len(scores) == 1
        for each in [*said.values()][1:]:
            head, _, body = each.partition(b"\r\n\r\n")
            assert re.fullmatch(rb"SPAMD/1\.1 0 EX_OK\r\nContent-length: %d\r\n" % len(body) + SCORE, head + b"\r\n")
    bodies = {each: said.partition(b"\r\n\r\n")[2] for each, said in of_spam.items()}
    assert re.fullmatch(rb"outcome=spam,probability=0\.9\d+(,[^\s,]+)+", bodies["SYMBOLS"])
    assert b"Outcome: spam" in bodies["REPORT"]
    assert bodies["REPORT_IFSPAM"] == bodies["REPORT"]
    assert of_ham["REPORT_IFSPAM"].endswith(b"\r\n\r\n")
    assert bodies["PROCESS"].startswith(b"X-Spam-Flag: YES\n")
    assert bodies["PROCESS"].endswith(SPAM)
    assert bodies["HEADERS"] + SPAM.partition(b"\n\n")[2] == bodies["PROCESS"]


def test_old_versions_are_answered_as_they_expect(mail_model):
    mail = SPAM.replace(b"\n", b"\r\n")
    whole, no_spam, none, symbols = ask(
        mail_model,
        request("PROCESS", mail, version="1.3"),
        request("PROCESS", mail, version="1.2"),
        b"PROCESS SPAMC/1.0\r\n" + mail,
        request("SYMBOLS", mail, version="1.2"),
    )
    body = whole.partition(b"\r\n\r\n")[2]
    assert no_spam == b"SPAMD/1.1 0 EX_OK\r\nContent-length: %d\r\n\r\n" % len(body) + body
    assert none == b"SPAMD/1.0 0 EX_OK\r\n" + body
    assert b"\r\nX-Spam-Flag: YES\r\nX-Spam-Status: Yes" in none
    assert symbols.endswith(b"\r\n")


def test_a_length_may_be_left_out_and_must_be_right(mail_model):
    check = "CHECK"
    right, none, short, long, line_more, no_number, huge = ask(
        mail_model,
        request(check, SPAM),
        request(check, SPAM, length=False),
        request(check, SPAM)[:-1],
        request(check, SPAM.rstrip()) + b" and more\n",
        request(check, SPAM) + b"what spamd does not read\n",
        request(check, SPAM, "Content-length: 1e3"),
        request(check, SPAM, "Content-length: " + "9" * 5000),
    )
    assert right == none == line_more
    for said in (short, long):
        assert said.startswith(b"SPAMD/1.0 76 Bad header line: (Content-Length mismatch: Expected ")
    assert code(no_number) == 76
    assert code(huge) == 65


def test_a_client_need_not_close_its_side(mail_model):
    said = ask(mail_model, request("CHECK", SPAM), request("PING"), half_close=False)
    assert b"Spam: True" in said[0]
    assert said[1] == b"SPAMD/1.5 0 PONG\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"CHECK\r\n\r\n",
        b"CHECK SPAMC/\xff\r\n\r\n",
        b"check SPAMC/1.5\r\n\r\n",
        b"CHECK SPAMC/1.5\r\nUser",
        b"CHECK SPAMC/1.5\r\nno header\r\n\r\n",
        b"CHECK SPAMC/1.5\r\nUser: a\x00b\r\n\r\n",
        b"CHECK SPAMC/1.5\r\nUser: " + b"a" * 300 + b"\r\n\r\n",
        b"CHECK SPAMC/1.5\r\nCompress: br\r\n\r\n",
        b"CHECK SPAMC/1.5\r\n" + b"X: y\r\n" * 300 + b"\r\n",
        b"CHECK SPAMC/1.5\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"x" * 1_000_000,
        b"TELL SPAMC/1.5\r\nMessage-class: junk\r\nSet: local\r\n\r\n",
        b"TELL SPAMC/1.5\r\nSet: local\r\n\r\n",
        b"TELL SPAMC/1.5\r\nMessage-class: spam\r\nSet: local\r\nRemove: local\r\n\r\n",
    ],
)
def test_what_is_not_the_protocol_is_refused_in_one_line(mail_model, sent):
    (said,) = ask(mail_model, sent)
    assert re.fullmatch(rb"SPAMD/1\.0 76 Bad header line: [\x20-\x7e]*\r\n", said)


def test_a_mail_may_be_compressed_but_no_bomb(mail_model):
    packed, bomb = zlib.compress(SPAM), zlib.compress(bytes(50_000_000))
    compressed = "Compress: zlib"
    plain, whole, cut, other, no_length, large, too_large = ask(
        mail_model,
        request("CHECK", SPAM),
        request("CHECK", packed, compressed),
        request("CHECK", packed[:-5], compressed),
        request("CHECK", SPAM, compressed),
        request("CHECK", packed, compressed, length=False),
        request("CHECK", bomb, compressed),
        request("CHECK", bytes(2_000_000)),
        limits=Limits(body=1_000_000),
    )
    assert plain == whole
    assert [code(said) for said in (cut, other, no_length, large, too_large)] == [69, 69, 69, 65, 65]


def test_what_decided_is_asked_of_the_model_that_is_there_under_its_lock(mail_model):
    service, seen = LiveLearner(mail_model), []
    predict = service.predict

    async def predict_and_replace(*given):
        said = await predict(*given)
        service.monitor.model = copy.deepcopy(mail_model)  # as others have it corrected meanwhile
        return said

    class Spying(Verdicts):
        def words(self, model, x):
            seen.append((model is service.model, is_held(service.monitor.lock)))
            return super().words(model, x)

    service.predict = predict_and_replace
    assert asyncio.run(judge_mail(service, Spying(), SPAM)).words
    assert seen == [(True, True)]


def test_a_mail_is_learned_once_corrected_and_forgotten(mail_model):
    mail = b"Message-ID: <new@x>\nSubject: quota\n\nYour quota is full\n"
    seen = b"X-Spam-Flag: NO\r\nReceived: elsewhere\r\n" + mail
    spam, ham = (("Message-class: " + label, "Set: local") for label in ("spam", "ham"))
    did = ask(
        mail_model,
        request("TELL", mail, *spam),
        request("TELL", seen, *spam),
        request("TELL", seen, *ham),
        request("TELL", mail, "Remove: local"),
        request("TELL", mail, "Remove: local"),
        request("TELL", mail, *ham),
        request("TELL", mail, "Message-class: spam", "Set: remote"),
        request("TELL", b"Subject: no id\n\nx", *spam),
        request("TELL", b"Received: later\nSubject: no id\r\n\r\nx", *spam),
    )
    assert all(code(said) == 0 for said in did)
    assert [re.findall(rb"Did\w+: local", said) for said in did] == [
        [b"DidSet: local"],
        [],
        [b"DidSet: local"],
        [b"DidRemove: local"],
        [],
        [b"DidSet: local"],
        [],
        [b"DidSet: local"],
        [],
    ]


def test_a_stranger_who_copies_a_message_id_corrects_nothing(mail_model):
    ours = b"Message-ID: <new@x>\nSubject: quota\n\nThe meeting is at noon\n"
    theirs = b"Message-ID: <new@x>\nSubject: quota\n\nClaim your prize\n"

    async def run():
        async with answering(mail_model) as service:
            for mail, label in ((ours, "ham"), (theirs, "spam"), (ours, "ham")):
                await exchange(service.port, request("TELL", mail, f"Message-class: {label}", "Set: local"))
            return service.model.n_learned, service.learned_ids()

    n_learned, ids = asyncio.run(run())
    assert n_learned == mail_model.n_learned + 2
    assert ids == [mail_id(ours), mail_id(theirs)]


def test_nobody_teaches_where_that_is_refused(mail_model):
    teach = request("TELL", SPAM, "Message-class: spam", "Set: local")
    refused, checked = ask(mail_model, teach, request("CHECK", SPAM), may_teach=False)
    assert refused == b"SPAMD/1.0 69 Service Unavailable: TELL commands have not been enabled.\r\n"
    assert code(checked) == 0


def test_a_client_that_stops_sending_is_not_waited_for(mail_model):
    (said,) = ask(mail_model, request("CHECK", SPAM)[:-9], half_close=False, limits=Limits(seconds=0.1))
    assert code(said) == 79


def test_who_comes_beyond_the_limit_is_told_to_try_again(mail_model):
    async def run():
        async with answering(mail_model, Limits(connections=2)) as service:
            idle = [asyncio.create_task(exchange(service.port, b"CHECK ", half_close=False)) for _ in range(2)]
            await asyncio.sleep(0.1)
            return await exchange(service.port, request("CHECK", SPAM)), [task.done() for task in idle]

    refused, done = asyncio.run(run())
    assert code(refused) == 75 and done == [False, False]


def test_users_who_have_a_folder_have_models_of_their_own_once_they_teach(mail_model, tmp_path):
    (tmp_path / "ann").mkdir()
    mail = b"Message-ID: <%d@x>\nSubject: weekly bargains\n\nThe bargains of this week\n"
    teach = [request("TELL", mail % i, "User: ann", "Message-class: spam", "Set: local") for i in range(5)]
    asked = [request("CHECK", mail % 9, f"User: {user}") for user in ("ann", "bob", "../ann", "c" * 250)]
    before = ask(mail_model, *asked, folder=tmp_path)
    assert [*(tmp_path / "ann").iterdir()] == []
    after = ask(mail_model, *teach, *asked, folder=tmp_path, most_bytes=1)[5:]
    resumed = ask(mail_model, *asked, folder=tmp_path)
    assert len({*before}) == 1
    assert after[0] != before[0]
    assert after[1:] == before[1:]
    assert resumed == after
    assert [path.name for path in tmp_path.iterdir()] == ["ann"]


def test_a_model_of_a_user_that_cannot_judge_mails_is_not_asked(mail_model, tmp_path, caplog):
    (tmp_path / folder_name("ann")).mkdir()
    TextClassifier().save(tmp_path / folder_name("ann") / FILE)
    teach = request("TELL", SPAM, "User: ann", "Message-class: spam", "Set: local")
    answers = ask(mail_model, request("CHECK", SPAM, "User: ann"), teach, request("CHECK", SPAM), folder=tmp_path)
    assert [b"Spam: " in answer or b"DidSet" in answer for answer in answers] == [False, False, True]
    assert "the model does not read mails" in caplog.text


def test_models_of_users_beyond_the_bound_are_closed_and_come_again(mail_model, tmp_path):
    head = ("Message-class: spam", "Set: local")
    teach = [request("TELL", b"Message-ID: <%d@x>\n\nbargains" % i, f"User: {i % 5}/..", *head) for i in range(20)]
    for i in range(5):
        (tmp_path / folder_name(f"{i}/..")).mkdir()

    mail_model.save(tmp_path / "size")
    size = (tmp_path / "size").stat().st_size
    (tmp_path / "size").unlink()

    async def run():
        async with answering(mail_model, folder=tmp_path, most_bytes=2 * size) as service:
            return [
                [b"DidSet" in said for said in await asyncio.gather(*(exchange(service.port, each) for each in teach))]
                for _ in range(2)
            ]

    learned, learned_again = asyncio.run(asyncio.wait_for(run(), 60))
    assert all(learned)
    assert not any(learned_again)
    assert len([*tmp_path.iterdir()]) == 5


@pytest.mark.parametrize("learns_common", [False, True])
def test_users_without_a_folder_teach_nothing_unless_the_common_model_is_to_learn_it(
    mail_model, tmp_path, learns_common
):
    (tmp_path / "file").touch()
    (tmp_path / "ann").mkdir()
    names = ["bob", "../..", ".", "..", "file", "a/../ann", "ü" * 100]
    spam = ("Message-class: spam", "Set: local")

    async def run():
        async with answering(mail_model, folder=tmp_path, learns_common=learns_common) as service:
            said = [
                await exchange(service.port, request("TELL", b"Subject: %d\n\na" % i, f"User: {name}", *spam))
                for i, name in enumerate(names)
            ]
            n_learned, learned = service.model.n_learned - mail_model.n_learned, request("TELL", SPAM, *spam)
            forget = [request("TELL", SPAM, *user, "Remove: local") for user in (["User: ann"], ["User: bob"], [])]
            said += [await exchange(service.port, each) for each in (learned, *forget)]
            return n_learned, [re.findall(rb"Did\w+", each) for each in said], {code(each) for each in said}

    n_learned, did, codes = asyncio.run(run())
    assert n_learned == learns_common * len(names) and codes == {0}
    assert did[: len(names)] == [[b"DidSet"] * learns_common] * len(names)
    of_bob, of_all = ([b"DidRemove"], []) if learns_common else ([], [b"DidRemove"])
    assert did[len(names) :] == [[b"DidSet"], [], of_bob, of_all]
    assert {path.name for path in tmp_path.iterdir()} == {"ann", "file"}


def test_a_user_s_journal_goes_on_from_the_model_that_it_began_with(mail_model, tmp_path):
    """Whatever the common model has learned since, and however the service ended."""
    (tmp_path / "ann").mkdir()
    teach = request("TELL", SPAM, "User: ann", "Message-class: ham", "Set: local")

    async def run(model, *sent):
        async with answering(model, folder=tmp_path) as service:
            said = [await exchange(service.port, each) for each in (*sent, request("CHECK", SPAM, "User: ann"))]
            for loaded in service.users._loaded.values():
                loaded.learner.checkpoints.release()
            service.users._loaded.clear()  # as if it had been killed
            return said[-1]

    before = asyncio.run(run(mail_model, teach))
    other = copy.deepcopy(mail_model)
    other.learn_many([HAM, SPAM] * 20, ["spam", "ham"] * 20)
    assert asyncio.run(run(other)) == before


def test_a_label_that_waits_is_forgotten_without_a_trace(mail_model):
    async def run():
        async with answering(mail_model) as service:
            service.active_learning = ActiveLearning(seconds=60.0)
            await exchange(service.port, request("CHECK", SPAM))
            (asked,) = service.active_learning.queue(1)
            service.active_learning.give(asked.number, "ham")
            said = await exchange(service.port, request("TELL", SPAM, "Remove: local"))
            await service.learn_given(at_once=True)
            return said, service.learned_ids(), service.model.n_learned - mail_model.n_learned

    said, ids, n_learned = asyncio.run(run())
    assert b"DidRemove: local" in said and (ids, n_learned) == ([], 0)


def test_in_the_end_those_are_answered_that_are_at_work(mail_model):
    async def run():
        async with answering(mail_model) as service:
            predict, at_work = service.predict, asyncio.Event()

            async def slow(*given):
                at_work.set()
                await asyncio.sleep(0.1)
                return await predict(*given)

            service.predict = slow
            asked = asyncio.create_task(exchange(service.port, request("CHECK", SPAM)))
            idle = asyncio.create_task(exchange(service.port, b"CHECK ", half_close=False))
            await at_work.wait()
        return await asked, await idle

    asked, idle = asyncio.run(asyncio.wait_for(run(), 30))
    assert code(asked) == 0
    assert code(idle) == 79


def test_prometheus_sees_the_verdicts_of_all_users_and_what_failed(mail_model, tmp_path):
    (tmp_path / "ann").mkdir()

    async def run():
        async with answering(mail_model, folder=tmp_path) as service:
            for user in ("ann", "bob"):
                await exchange(
                    service.port, request("TELL", SPAM, f"User: {user}", "Message-class: spam", "Set: local")
                )
                await exchange(service.port, request("CHECK", SPAM, f"User: {user}"))
            await exchange(service.port, request("PROCESS", HAM))
            await exchange(service.port, request("CHECK", SPAM)[:-1])
            return Metrics(service).text().decode()

    text = asyncio.run(asyncio.wait_for(run(), 30))
    for sample in (
        'mails_total{verdict="unsure"} 0.0',
        'mails_total{verdict="spam"} 2.0',
        'mails_total{verdict="ham"} 1.0',
        "failed_requests_total 0.0",
        'refused_requests_total{status="spamd 76"} 1.0',
    ):
        assert f"\nstream_pegasos_{sample}\n" in text
    assert "\nstream_pegasos_failing 0.0\n" in text
