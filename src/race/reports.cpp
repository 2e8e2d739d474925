#include "race/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>

#include "base/json.h"

namespace riffle::race {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 53;

std::optional<double> number(const JsonReader& from, std::string_view key) {
  if (!from.has(key) || from.at(key).is_null()) return std::nullopt;
  return from.at(key).number();
}

}  // namespace

void RankReport::feed(std::string_view bytes, std::string_view source) {
  torn_ += bytes;
  std::exception_ptr first;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = torn_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    ++line_;
    const std::string_view line = std::string_view(torn_).substr(begin, end - begin);
    try {
      if (!line.empty()) take(line, fmt::format("{}: line {}", source, line_));
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  torn_.erase(0, begin);
  if (first) std::rethrow_exception(first);
}

void RankReport::take(std::string_view line, const std::string& where) {
  const Json json = parse_json(line, where);
  const JsonReader reader(json, where);
  if (reader.has("step")) {
    (void)reader.at("step").integer(0, most);
    steps_.push_back({reader.at("seconds").number_at_least(0), number(reader, "exposed"),
                      number(reader, "loss")});
  } else if (reader.has("evaluated")) {
    evaluations_.push_back({reader.at("evaluated").integer(0, most),
                            reader.at("seconds").number_at_least(0),
                            reader.at("accuracy").number()});
  } else if (reader.has("end")) {
    end_ = ReportedEnd{reader.at("end").text()};
    if (reader.has("timeline") && reader.at("timeline").is_text())
      end_->timeline = reader.at("timeline").text();
  } else {
    reader.fail("is no line of a race: it has neither step, evaluated nor end");
  }
}

Reports::Reports(std::filesystem::path folder, int ranks)
    : folder_(std::move(folder)),
      ranks_(static_cast<std::size_t>(ranks)),
      read_(static_cast<std::size_t>(ranks)) {}

bool Reports::read() {
  bool news = false;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::filesystem::path path = folder_ / fmt::format("rank{}.jsonl", rank);
    std::ifstream file(path, std::ios::binary);
    file.seekg(read_[rank]);
    std::array<char, 1 << 16> bytes;
    while (file) {
      file.read(bytes.data(), bytes.size());
      const std::streamsize got = file.gcount();
      if (got <= 0) break;
      read_[rank] += got;
      news = true;
      ranks_[rank].feed({bytes.data(), static_cast<std::size_t>(got)}, path.filename().string());
    }
  }
  return news;
}

Step Reports::steps() const {
  Step least = most;
  for (const RankReport& rank : ranks_)
    least = std::min(least, static_cast<Step>(rank.steps().size()));
  return ranks_.empty() ? 0 : least;
}

bool Reports::begun() const {
  return std::ranges::any_of(ranks_, [](const RankReport& rank) { return !rank.steps().empty(); });
}

}  // namespace riffle::race
