"""`riffle train`: a built-in task on local workers, or as a worker of torchrun, mpirun or Slurm."""

import warnings

# torch says so on every import where numpy is not installed; nothing here uses it.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
