// The events of a torch.profiler file that say something about a training step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace riffle::model {

// Times are microseconds of the profiler's clock.
struct TorchOp {
  std::string name;
  std::size_t index = 0;  // its place in the file
  double start = 0;
  double end = 0;
  std::int64_t sequence = -1;  // joins a forward operator with its backward function; -1: none
  std::vector<std::int64_t> first_dims;  // "Input Dims" of the first input, as JSON gave them
  std::string first_type;                // "float", "c10::Half", ...
  bool has_dims = false;                 // recorded with record_shapes=True
  std::string where;                     // for errors: "file: traceEvents[7]"
};

// Work on a device: it runs some time after the operator that launched it.
struct TorchKernel {
  double launched = 0;
  double end = 0;
};

struct TorchEvents {
  std::vector<TorchOp> ops;              // cat cpu_op, by start, outer before inner
  std::vector<TorchOp> optimizer_steps;  // the annotations torch.optim makes
  std::vector<TorchKernel> kernels;      // by launch; empty for a run on the CPU
};

TorchEvents read_torch_events(std::string_view text, std::string_view source);

}  // namespace riffle::model
