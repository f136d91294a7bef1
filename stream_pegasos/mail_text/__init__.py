"""A mail's bytes: their parts, what a reader sees of them, fields, tokens, and what a model learns of all that.

| what | file |
|---|---|
| header fields and the tree of parts, however broken | `mime` |
| what stands within signatures, and within Outlook's winmail.dat and its RTF | `smime`, `tnef`, `rtf` |
| charsets, transfer encodings, encoded words | `decoding` |
| which of several forms is read, and what of it is seen | `parts` |
| pages: elements, sheets, styles, and which texts these hide | `html`, `sheets`, `css`, `styles`, `colors` |
| how much work a mail may cost | `work` |
| mails that are attached to a mail | `attached` |
| what filters write into a mail or around it, taken away | `markup` |
| what headers say of sender, route and list; fields that tell the label | `headers`, `telling` |
| texts as tokens; words that are disguised | `tokens`, `disguise` |
| `MailFeatures` | `features` |
| the id of a mail, by which it is learned once | `ids` |
"""
