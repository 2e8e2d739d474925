// Logs of OSU's all-reduce test.
#include "property.h"
#include "riffle/import.h"

using namespace riffle;  // NOLINT(google-build-using-namespace): a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto points = fuzz::parsed([&] { return import_osu(text, "allreduce.log"); });
  if (!points) return 0;
  fuzz::require(!points->empty(), "a log has points");
  std::string again = "# Size Latency\n";
  for (const MeasuredPoint& point : *points)
    again += fmt::format("{} {}\n", point.size.count, point.time.count() * 1e6);
  const auto reread = import_osu(again, "again");
  fuzz::require(reread.size() == points->size(), "every point reads back", again);
  for (std::size_t i = 0; i < reread.size(); ++i) {
    fuzz::require(reread[i].size == (*points)[i].size, "sizes read back", again);
    const double ratio = reread[i].time / (*points)[i].time;
    fuzz::require(ratio > 1 - 1e-12 && ratio < 1 + 1e-12, "times read back", again);
  }
  return 0;
}
