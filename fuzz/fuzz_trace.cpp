// Every trace format; what was read is written as our JSON and read back.
#include "property.h"
#include "riffle/import.h"

using namespace riffle;  // NOLINT(google-build-using-namespace): a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto trace = fuzz::parsed([&] { return import_trace(text, "model.txt"); });
  if (!trace) return 0;
  fuzz::require(!print(*trace).empty(), "a trace prints");
  const std::string json = to_json(*trace);
  fuzz::require(recognize(json) == TraceFormat::riffle, "our JSON is recognized", json);
  fuzz::require(import_trace(json, "again") == *trace, "a trace reads back", json);
  return 0;
}
