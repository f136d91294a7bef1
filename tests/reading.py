"""What tests of live sources read with."""

from stream_pegasos.streams import open_source


def rest(address, position=None, **options):
    """The batches that are there after the position, the bad records and the events."""
    bad, events = [], []
    source = open_source(
        address, position, follow=False, on_bad=lambda *at: bad.append(at), on_event=events.append, **options
    )
    return list(source.batches()), bad, events


def texts(batches):
    return [example.x for batch in batches for example in batch.examples]
