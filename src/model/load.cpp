#include "riffle/load.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "riffle/error.h"
#include "riffle/import.h"
#include "riffle/zoo.h"

namespace riffle {

Trace load_trace(const std::string& name_or_file) {
  const auto known = builtin_traces();
  if (std::ranges::find(known, name_or_file) != known.end()) return builtin_trace(name_or_file);
  const std::filesystem::path path(name_or_file);
  std::error_code ignored;
  if (path.has_extension() || path.has_parent_path() || std::filesystem::exists(path, ignored))
    return load_trace_file(path);
  throw UsageError(unknown_name("model", name_or_file, known) + ", or a trace file");
}

}  // namespace riffle
