"""Suggestions for unknown commands and options."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

import click

# The commands, each with its names in other tools and in common speech.
COMMANDS_BY_OTHER_NAMES = {
    "evaluate": "eval validate validation score benchmark measure progressive prequential cv cross-validate compare",
    "train": "fit learn teach build create new update partial-fit finetune retrain",
    "predict": "classify infer inference apply answer transform detect categorize categorise",
    "run": "stream follow tail consume watch process pipe online live listen",
    "serve": "server service start api http web rest host daemon up",
    "mail-filter": "filter mail procmail milter spam",
    "imap": "mailbox inbox",
    "label": "annotate tag labelling labeling active",
    "explain": "inspect show why weights features info describe interpret audit top",
    "tune": "optimize optimise search autotune hyperopt sweep grid",
    "forget-class": "forget unlearn remove delete remove-class delete-class drop-class",
    "--help": "help usage man",
    "--version": "version",
}
# Names of options in other tools or other commands, each with its option, or argument without a flag, here.
OPTIONS_BY_OTHER_NAMES = {
    "MODEL": "load model model-file model-path load-model initial-model initial-regressor from resume m i",
    "FILE": "file input input-file in data train-file test-file dataset stream source d f",
    "SOURCE": "file input input-file in data stream source address url kafka redis topic d f",
    "STREAM": "file input in data source d f",
    "--save MODEL": "output out o model-out output-model save-model final-regressor checkpoint export",
    "--output FILE": "save predictions out o p outfile output-file result results answers write",
    "--output SINK": "save predictions out o p sink to outfile output-file result results answers write",
    "--output LABELS": "labels-file out o outfile output-file predictions",
    "--checkpoint MODEL": "save state resume save-resume output model-out",
    "--checkpoint-every N": "checkpoint-interval checkpoint-seconds save-every interval every",
    "--format NAME": "input-format file-format type",
    "--output-format NAME": "out-format answer-format",
    "--text-field A,B,…": "text text-column text-col column col field fields feature content x",
    "--label-field NAME": "label label-column label-col target target-column class class-column y",
    "--id-field NAME": "id id-column id-col key",
    "--read-option encoding=…": "encoding charset codec",
    "--read-option delimiter=…": "delimiter delim sep separator quoting",
    "--read-option columns=…": "columns header no-header names",
    "--labels A,B,…": "classes class-names categories allowed-labels label",
    "--label-separator SEP": "label-delimiter separator sep",
    "--limit N": "n n-messages max max-messages max-examples head examples rows count",
    "--strict": "fail-fast validate",
    "--multi-label": "multilabel several-labels many-labels",
    "--ordered": "ordinal order",
    "--classifier NAME": "learner algorithm algo estimator loss method",
    "--learning-rate η": "lr l eta step alpha rate",
    "--half-life N": "window decay fading forget forgetting halflife",
    "--l2 λ": "lambda reg regularization regularisation weight-decay c",
    "--class-weight NAME": "class-weights weights weight",
    "--balanced": "class-weight balance",
    "--max-false-positive-rate R": "fpr max-fpr false-positive-rate",
    "--threshold P": "cutoff cut-off probability",
    "--spam-threshold P": "threshold cutoff cut-off probability",
    "--pos-label LABEL": "positive positive-label positive-class pos",
    "--decide-for METRIC": "optimize-for optimise-for metric objective",
    "--metric NAME": "scoring objective score optimize optimise decide-for measure",
    "--coverage SHARE": "conformal sets prediction-sets confidence alpha",
    "--max-features N": "max-words vocabulary vocab-size dictionary",
    "--features JSON_OR_FILE": "ngrams ngram ngram-range word-ngrams analyzer n-features binary mask-digits "
    "prefix-length route hash-bits bits b stop-words lowercase tokenizer",
    "--fields NAME:KIND,…": "category-field number-field time-field category number numeric time extra-fields",
    "--vectors NAME_OR_PATH": "embeddings embedding word-vectors pretrained pretrained-vectors encoder",
    "--describe FILE": "descriptions description describe-names label-names",
    "--teacher URL": "llm openai language-model judge labeller annotator chat",
    "--ask-share P": "ask share-asked budget",
    "--plot FILE": "curve figure chart graph plot-file",
    "--compare MODEL": "model baseline against with",
    "--top N": "k n limit max count",
    "--text TEXT": "message document string example input",
    "--mail FILE": "eml email",
    "--delay N": "lag late",
    "--no-follow": "once no-tail stop-at-end exit-at-end no-wait",
    "--host ADDRESS": "bind address listen interface ip server",
    "--host NAME[:PORT]": "server imap-host port address",
    "--port N": "p bind listen",
    "--token-file FILE": "token api-key key auth secret password password-file",
    "--password-file FILE": "password pass token token-file",
    "--user NAME": "username login u",
    "--tls WHEN": "starttls no-tls ssl no-ssl insecure",
    "--spamd-teach WHO": "spamd-no-tell spamd-learn-common",
    "--dry-run": "simulate check no-op n",
    "--append": "add continue a",
    "--allowed-host NAME": "allowed-hosts cors hosts origin trusted-host",
    "--keep-feature-names": "keep-names feature-names words keep-words",
}


# Options of other tools that this one does not need.
NEEDS_NONE = {
    "epochs epoch passes iterations n-iter": "Each message is learned once, in one pass.",
    "threads n-threads jobs n-jobs workers j": "All processors that the process may use work; see taskset.",
    "seed random-state random-seed shuffle": "Nothing is random: the same stream gives the same model.",
    "force overwrite yes y": "To replace a file that is of another kind, remove it first.",
}


def command_meant(name: str, commands: Iterable[str]) -> str | None:
    """The command that a wrong name means, by its meaning, or else by its spelling."""
    spelt = _bare(name)
    if spelt in commands:
        return spelt
    candidates = [command for command, other_names in COMMANDS_BY_OTHER_NAMES.items() if spelt in other_names.split()]
    return next(iter(candidates or get_close_matches(spelt, commands, 1)), None)


def option_advice(flag: str, command: click.Command, siblings: Iterable[click.Command]) -> str:
    """Advice about an unknown option: a similar option of the command, or the command that has it."""
    name, own = _bare(flag), {*offered(command)}
    if f"--{name}" in own:
        return f"Did you mean --{name}?"
    needless = [why for other_names, why in NEEDS_NONE.items() if name in other_names.split()]
    options = [shown for shown, other_names in OPTIONS_BY_OTHER_NAMES.items() if name in other_names.split()]
    places = [shown for shown in options if is_in(own, shown)]
    candidates: dict[str, list[str]] = {f"--{name}": [], **{shown: [] for shown in options if not places}}
    for name_here in siblings:
        has = {*offered(name_here)}
        for shown in candidates:
            candidates[shown] += [str(name_here.name)] * is_in(has, shown)
    elsewhere = [f"{shown} belongs to {', '.join(names)}." for shown, names in candidates.items() if names]
    if not (places or elsewhere or needless):  # a spelling error
        spellings = {name_here.lstrip("-"): name_here for name_here in own if " " not in name_here}
        spellings |= {
            word: shown
            for shown, other_names in OPTIONS_BY_OTHER_NAMES.items()
            for word in other_names.split()
            if is_in(own, shown) and word not in spellings
        }
        places = [spellings[near] for near in get_close_matches(name, spellings, 1)]
    places = [
        name_here if name_here.startswith("-") else f"{name_here}, without an option before it"
        for name_here in sorted(places)
    ]
    advice = [*needless, *[f"Did you mean {' or '.join(places)}?"] * bool(places), *elsewhere]
    return " ".join(advice) or "--help-all lists the options."


def _bare(name: str) -> str:
    return name.lower().lstrip("-").replace("_", "-")


def is_in(names: set[str], shown: str) -> bool:
    """Whether an option is in the set; an option of the form NAME=VALUE counts for any value."""
    return shown in names or ("=" in shown and shown.split()[0] in names)


def offered(command: click.Command) -> Iterator[str]:
    """The arguments and options of a command, each alone and with the placeholder of its value."""
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            yield str(parameter.metavar).strip("[]")
        elif isinstance(parameter, click.Option) and not parameter.hidden:
            for flag in (*parameter.opts, *parameter.secondary_opts):
                yield from (flag, f"{flag} {parameter.metavar}") if parameter.metavar else (flag,)
