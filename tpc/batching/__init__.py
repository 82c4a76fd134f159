"""vmap: tensors with a hidden batch dimension, and what every operator does with it."""
