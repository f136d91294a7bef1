# The compiled engine has the names and signatures of its specification.
from stream_pegasos._pure import AdaptiveLearner as AdaptiveLearner
from stream_pegasos._pure import Encoder as Encoder
from stream_pegasos._pure import KernelLearner as KernelLearner
from stream_pegasos._pure import Learner as Learner
from stream_pegasos._pure import MultiLearner as MultiLearner
from stream_pegasos._pure import Rows as Rows
from stream_pegasos._pure import Scanner as Scanner
from stream_pegasos._pure import Vocabulary as Vocabulary
from stream_pegasos._pure import WeightDict as WeightDict
from stream_pegasos._pure import signs_of as signs_of
