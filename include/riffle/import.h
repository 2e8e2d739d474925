// Reads what others measured: traces of several formats, recognized by content, and curves of
// all-reduce time against size.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "riffle/trace.h"

namespace riffle {

enum class TraceFormat {
  unknown,
  riffle,          // our own JSON
  torch_profiler,  // Chrome JSON of torch.profiler's export_chrome_trace
  pipedream,       // graph.txt of PipeDream's profiler
  caffe,           // B-Caffe's log of backward and communication times
};
std::string_view name_of(TraceFormat format);

// Looks at the text, never at a file's name. The text may still turn out to be broken.
TraceFormat recognize(std::string_view text);

// `source` is the file's name: for errors, and for the model's name where the format has none
// ("runs/resnet50.graph.txt" -> "resnet50"). UsageError naming the supported formats for a text of
// none of them, and naming the line or field for a broken one. What a format leaves open (batch,
// forward times) is said in Trace::source.
Trace import_trace(std::string_view text, std::string_view source);
Trace load_trace_file(const std::filesystem::path& path);

// What an all-reduce of that size took.
struct MeasuredPoint {
  Bytes size;
  Seconds time{};
  bool operator==(const MeasuredPoint&) const = default;
};

// Output of OSU's latency tests: "bytes microseconds" a line, "ranks,bytes microseconds" in some,
// with or without the columns of the option -f; # starts a comment. In the order of the file; at
// least one point. UsageError naming the line otherwise.
std::vector<MeasuredPoint> import_osu(std::string_view text, std::string_view source);
std::vector<MeasuredPoint> load_osu_file(const std::filesystem::path& path);

}  // namespace riffle
