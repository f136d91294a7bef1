"""Interfaces to a mail system: a filter in a pipe, SpamAssassin's protocol, and an IMAP mailbox.

| what | file |
|---|---|
| verdicts on mails, and their headers | `verdict`, `verdict_headers` |
| SpamAssassin's protocol and its server; models of users | `spamd_protocol`, `spamd`, `users`; addresses: `listening` |
| the filter of an IMAP mailbox | `mailbox_filter`, over `imap_watch`, `imap_training`, `imap_connection` |
| its memory and its checkpoint | `imap_memory`, `imap_ledger` |
"""
