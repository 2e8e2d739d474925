// Which format a text is in, and the way to its importer.
#include "riffle/import.h"

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "model/import/formats.h"
#include "riffle/error.h"

namespace riffle {
namespace {

// Whether `"key":` occurs, with blanks before the colon allowed.
bool has_key(std::string_view text, std::string_view key) {
  const std::string quoted = fmt::format("\"{}\"", key);
  for (std::size_t at = text.find(quoted); at != std::string_view::npos;
       at = text.find(quoted, at + 1)) {
    const std::size_t next = text.find_first_not_of(" \t\r\n", at + quoted.size());
    if (next != std::string_view::npos && text[next] == ':') return true;
  }
  return false;
}

[[noreturn]] void refuse(std::string_view text, std::string_view source) {
  const bool gzip = text.starts_with("\x1f\x8b");
  usage_error(
      "{}: {} is in no known format{}; supported: riffle trace JSON, torch.profiler Chrome JSON, "
      "PipeDream graph, B-Caffe log",
      source, text.empty() ? "an empty file" : quote(text.substr(0, 20)),
      gzip ? " (it is compressed: gunzip it first)" : "");
}

}  // namespace

std::string_view model::file_name(std::string_view source) {
  return source.substr(source.find_last_of('/') + 1);
}

std::string model::model_name(std::string_view source) {
  const std::string_view file = model::file_name(source);
  const std::string_view stem = file.substr(0, file.find('.', 1));
  return valid_utf8(one_line(stem.empty() ? "unnamed" : stem));
}

bool model::looks_like_riffle(std::string_view text) {
  return trim(text).starts_with('{') && has_key(text, "riffle");
}

std::string_view name_of(TraceFormat format) {
  switch (format) {
    case TraceFormat::riffle:
      return "riffle trace";
    case TraceFormat::torch_profiler:
      return "torch profiler";
    case TraceFormat::pipedream:
      return "PipeDream graph";
    case TraceFormat::caffe:
      return "B-Caffe log";
    case TraceFormat::unknown:
      break;
  }
  return "unknown";
}

TraceFormat recognize(std::string_view text) {
  if (model::looks_like_riffle(text)) return TraceFormat::riffle;
  if (model::looks_like_torch_profiler(text)) return TraceFormat::torch_profiler;
  if (model::looks_like_pipedream(text)) return TraceFormat::pipedream;
  if (model::looks_like_caffe(text)) return TraceFormat::caffe;
  return TraceFormat::unknown;
}

Trace import_trace(std::string_view text, std::string_view source) {
  switch (recognize(text)) {
    case TraceFormat::riffle:
      return trace_from_json(text, source);
    case TraceFormat::torch_profiler:
      return model::import_torch_profiler(text, source);
    case TraceFormat::pipedream:
      return model::import_pipedream(text, source);
    case TraceFormat::caffe:
      return model::import_caffe(text, source);
    case TraceFormat::unknown:
      break;
  }
  refuse(text, source);
}

Trace load_trace_file(const std::filesystem::path& path) {
  return import_trace(read_file(path), one_line(path.string()));
}

}  // namespace riffle
