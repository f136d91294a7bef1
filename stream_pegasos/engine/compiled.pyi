# The compiled engine has the names and signatures of its specification.
from stream_pegasos.engine.pure import AdaptiveLearner as AdaptiveLearner
from stream_pegasos.engine.pure import Encoder as Encoder
from stream_pegasos.engine.pure import Learner as Learner
from stream_pegasos.engine.pure import Lock as Lock
from stream_pegasos.engine.pure import OneByOne as OneByOne
from stream_pegasos.engine.pure import PegasosLearner as PegasosLearner
from stream_pegasos.engine.pure import Rows as Rows
from stream_pegasos.engine.pure import Scanner as Scanner
from stream_pegasos.engine.pure import Vocabulary as Vocabulary
from stream_pegasos.engine.pure import find_numeric as find_numeric
from stream_pegasos.engine.pure import learn_moments as learn_moments
from stream_pegasos.engine.pure import probabilities_many as probabilities_many
from stream_pegasos.engine.pure import probabilities_one as probabilities_one
from stream_pegasos.engine.pure import standardize as standardize
from stream_pegasos.engine.pure import target_array as target_array
