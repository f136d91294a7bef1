"""Interfaces to a mail system: a filter in a pipe, SpamAssassin's protocol, and an IMAP mailbox."""
