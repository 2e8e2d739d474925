// One importer per format, each in the file of its name; import.cpp chooses. Tests use the nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/trace.h"

namespace riffle::model {

// A line of a PipeDream graph. Nodes named Input... are no layers: their forward time is data
// loading.
struct PipedreamNode {
  std::int64_t id = 0;
  std::string description;
  Seconds forward{};
  Seconds backward{};
  double activation_bytes = 0;  // of an input; zero for others
  std::int64_t elements = 0;

  [[nodiscard]] bool is_input() const { return description.starts_with("Input"); }
};
// In execution order, which is the order of the ids.
std::vector<PipedreamNode> read_pipedream(std::string_view text, std::string_view source);

bool looks_like_pipedream(std::string_view text);
bool looks_like_caffe(std::string_view text);
bool looks_like_torch_profiler(std::string_view text);
bool looks_like_riffle(std::string_view text);

Trace import_pipedream(std::string_view text, std::string_view source);
Trace import_caffe(std::string_view text, std::string_view source);
Trace import_torch_profiler(std::string_view text, std::string_view source);

// The last part of a path; a model's name is that up to its first dot.
std::string_view file_name(std::string_view source);
std::string model_name(std::string_view source);

}  // namespace riffle::model
