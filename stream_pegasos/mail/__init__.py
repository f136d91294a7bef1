"""The edge of a mail system: a filter in a pipe, SpamAssassin's protocol, an IMAP mailbox."""
