// Built-in traces: well-known models, computed from their architectures. Sizes are exact; times are
// modelled from the FLOPs and the memory traffic of a named device and marked so in Trace::source.
// docs/traces.md has the rules, the table of models and how far the modelled times are off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/trace.h"
#include "riffle/units.h"

namespace riffle {

struct BuiltinModel {
  std::string name;
  std::string configuration;  // variant, input, head: what makes the count exact
  std::string paper;
  int batch = 1;  // default, per worker
  std::int64_t parameters = 0;
  std::size_t layers = 0;    // of the trace: modules that carry parameters
  double multiply_adds = 0;  // of one sample's forward pass; a FLOP count is twice that
};

// What computes: `efficiency` is the one fitted constant, the share of the peak that kernels reach.
struct Device {
  std::string name;   // "v100"
  std::string title;  // "V100 fp32"
  double peak_flops_per_second = 0;
  Bandwidth memory;
  double efficiency = 1;
  Seconds launch{};  // start of one kernel
};

struct BuiltinOptions {
  std::optional<int> batch;  // the model's own when absent
  std::string device = "v100";
};

// Names, sorted.
std::vector<std::string> builtin_traces();
// The same, with what a list prints of each.
std::vector<BuiltinModel> builtin_models();
// UsageError for an unknown model or device (with the nearest) and a batch that is not
// from 1 to 2^30.
Trace builtin_trace(std::string_view name, const BuiltinOptions& options = {});

std::vector<Device> builtin_devices();
Device builtin_device(std::string_view name);

}  // namespace riffle
