// OSU micro-benchmarks' all-reduce latency (osu_allreduce): size and average microseconds a line.
#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"
#include "riffle/error.h"
#include "riffle/import.h"

namespace riffle {
namespace {

std::vector<std::string_view> columns(std::string_view line) {
  std::vector<std::string_view> found;
  while (true) {
    line = trim(line);
    if (line.empty()) return found;
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    found.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

MeasuredPoint read_point(std::string_view line, const std::string& where) {
  const auto found = columns(line);
  // Five with -f: average, minimum, maximum and the number of iterations.
  if (found.size() != 2 && found.size() != 5)
    usage_error("{}: {} is not 'bytes microseconds'", where, quote(line));
  const auto first = split(found[0], ',');
  if (first.size() > 2) usage_error("{}: {} is not 'ranks,bytes'", where, quote(found[0]));
  for (const std::string_view number : first) parse_integer(number, where + ": bytes");
  for (const std::string_view number : std::span(found).subspan(1))
    parse_number(number, where + ": microseconds");
  const std::int64_t bytes = parse_integer(first.back(), where + ": bytes");
  const double time = parse_number(found[1], where + ": microseconds");
  if (bytes < 1 || bytes > kMostWhole)
    usage_error("{}: bytes: {} must be from 1 to 2^53", where, bytes);
  if (time <= 0) usage_error("{}: microseconds: {} must be above zero", where, time);
  return {Bytes{bytes}, microseconds(time)};
}

}  // namespace

std::vector<MeasuredPoint> import_osu(std::string_view text, std::string_view source) {
  std::vector<MeasuredPoint> points;
  std::size_t number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || line.starts_with('#')) continue;
    points.push_back(read_point(line, fmt::format("{}: line {}", source, number)));
  }
  if (points.empty()) usage_error("{}: no line has 'bytes microseconds'", source);
  return points;
}

std::vector<MeasuredPoint> load_osu_file(const std::filesystem::path& path) {
  return import_osu(read_file(path), one_line(path.string()));
}

}  // namespace riffle
