"""A mailbox in memory, and a filter of it in a process that may be killed wherever it waits for the server."""

from stream_pegasos import MailFeatures, TextClassifier
from stream_pegasos.mail.imap_ledger import Ledger
from stream_pegasos.mail.mailbox_filter import MailboxFilter, MailboxPlan
from stream_pegasos.mail.verdict import Verdict, Verdicts
from stream_pegasos.mail_text.ids import mail_id

FOLDERS = ("INBOX", "Junk", "Archive")


class Killed(Exception):
    pass


def key_of(mail):
    return " ".join(mail.partition(b"\n\n")[0].decode().split())


class Mailbox:
    """A mailbox in memory, as a `Connection` shows it. `kill_at` calls from now on the process is killed: before the
    call does anything if the number is even, else after it.
    """

    def __init__(self, has_move):
        self.folders = {name: {} for name in FOLDERS}  # mails by UID
        self.validity = dict.fromkeys(FOLDERS, 1)
        self.next = dict.fromkeys(FOLDERS, 1)
        self.has_move, self.kill_at, self.opened = has_move, None, ""
        self.deleted = set()  # mails with that flag: their folder and UID
        self.keywords = {}  # of mails, by keyword: UIDs of the inbox
        self.undelivered, self.broken = {}, set()  # mails that are not delivered: the reasons, and the mails

    def call(self, action):
        if self.kill_at is None:
            return action()
        self.kill_at -= 2
        if self.kill_at in (-2, -1):
            if self.kill_at == -1:
                action()
            self.kill_at = None
            raise Killed
        return action()

    def put(self, name, mail):
        self.folders[name][self.next[name]] = mail
        self.next[name] += 1

    def owner_moves(self, mail, target):
        for name in FOLDERS:
            for uid in [uid for uid, each in self.folders[name].items() if each == mail]:
                del self.folders[name][uid]
        self.put(target, mail)

    def number_anew(self, name):
        mails = [*self.folders[name].values()]
        self.validity[name] += 1
        self.folders[name], self.next[name] = {}, 1
        for mail in mails:
            self.put(name, mail)

    def where(self, mail):
        return [name for name in FOLDERS for each in self.folders[name].values() if each == mail]

    def has_folder(self, name):
        return name in FOLDERS

    def status(self, name):
        return self.call(lambda: (self.validity[name], self.next[name]))

    def open(self, name, to_write=False):
        self.opened = name
        return self.status(name)

    @property
    def here(self):
        return self.folders[self.opened]

    def uids(self, first=1, since=None):
        return self.call(lambda: sorted(uid for uid in self.here if uid >= first))

    def there(self, uids):
        return self.call(lambda: {uid for uid in {*uids} & {*self.here} if (self.opened, uid) not in self.deleted})

    def keys(self, uids):
        yield self.call(lambda: {uid: key_of(self.here[uid]) for uid in uids if uid in self.here})

    def mails(self, uids):
        found = self.call(lambda: {uid: self.here[uid] for uid in uids if uid in self.here})
        self.undelivered |= {(self.opened, uid): "damaged" for uid, mail in found.items() if mail in self.broken}
        yield {uid: mail for uid, mail in found.items() if mail not in self.broken}

    def search_keywords(self, *names):
        return self.call(lambda: {uid for name in names for uid in self.keywords.get(name, ()) if uid in self.here})

    def flag(self, uid):
        self.call(lambda: self.keywords.setdefault("$Junk", set()).add(uid))

    def move(self, uid, target):
        if self.has_move:
            self.call(lambda: self.owner_moves(self.here[uid], target))
        else:
            self.call(lambda: self.put(target, self.here[uid]))
            self.remove(uid)

    def remove(self, uid):
        self.call(lambda: self.here.pop(uid))


class Process:
    """The filter in a process that may be killed; the files outlive it."""

    def __init__(self, folder, box, moves=True):
        self.box = box
        verdicts = Verdicts()
        self.ledger = Ledger(folder / "m", lambda: TextClassifier(MailFeatures()), verdicts)
        self.filter = MailboxFilter(self.ledger, verdicts, MailboxPlan(ham_folders=("Archive",), moves=moves))
        self.filter._judge = lambda mails: [
            Verdict("spam" if b"spam" in mail else "ham", 0.99, 9.0) for _, mail in mails
        ]

    def label_of(self, mail):
        return next((label for label in ("spam", "ham") if self.ledger.learning.ids.has(mail_id(mail), label)), None)

    def look(self):
        self.filter.begin(self.box)
        while self.filter.look(self.box):
            pass

    def end(self, with_checkpoint):
        """A journal is written without a buffer, so that after a kill there is the same in it."""
        if with_checkpoint:
            self.ledger.close()
        else:
            self.ledger.learning.close(last=False)
