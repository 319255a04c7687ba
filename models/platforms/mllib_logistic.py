"""Spark MLlib's LogisticRegression: softmax regression by l-bfgs, beside MLlib's own perceptron of the same sizes.

It can't be given initial weights: it starts from zeros, with the classes' shares as intercepts, whatever the seed. It
scales each column by its deviation while it searches, whatever it is told; without regularization that changes the way
and not the goal.
"""

from __future__ import annotations

from typing import Any, ClassVar

from models.dataset import Dataset
from models.networks import Layer
from models.platforms.mllib import MLlib
from models.spec import TrialSpec


class MLlibLogistic(MLlib):
    name: ClassVar[str] = "mllib-logistic"
    axes: ClassVar[frozenset[str]] = MLlib.axes - {"learning_rates", "initial_weights"}

    def unavailable(self, spec: TrialSpec) -> str | None:
        if why := super().unavailable(spec):
            return why
        if spec.network.hidden:
            return f"MLlib's logistic regression has no hidden layers, and {spec.network.name} has some"
        if spec.hyperparameters.solver != "l-bfgs":
            return f"MLlib's logistic regression has only the solver l-bfgs, not {spec.hyperparameters.solver}"
        return None

    def _estimator(self, spec: TrialSpec, data: Dataset) -> Any:
        from pyspark.ml.classification import LogisticRegression

        return LogisticRegression(
            family="multinomial",
            maxIter=spec.hyperparameters.epochs,
            tol=0.0,  # else it stops when it thinks it is done
            regParam=0.0,
            standardization=False,
        )

    def _found(self, spec: TrialSpec, model: Any) -> tuple[list[float], list[Layer]]:
        return model.summary.objectiveHistory, [(model.coefficientMatrix.toArray(), model.interceptVector.toArray())]
