#include "report/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

#include "report/table.h"

namespace riffle::report {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::array<int, 12> kColours{34, 32, 33, 35, 36, 31, 94, 92, 93, 95, 96, 91};
constexpr int kGap = 4;

struct Cell {
  std::string text;
  int colour = 0;
  bool star = false;
};

int width_of(const std::string& text) {
  return static_cast<int>(printed_width(text));
}

// Racks, or rows of a square where there is only one.
Partition rows(const World& world) {
  Partition racks = world.racks();
  if (racks.size() > 1) return racks;
  const std::vector<Rank>& ranks = world.ranks().ranks();
  const auto length = static_cast<std::size_t>(std::ceil(std::sqrt(ranks.size())));
  Partition lines;
  for (std::size_t at = 0; at < ranks.size(); at += length)
    lines.emplace_back(std::vector<Rank>(
        ranks.begin() + static_cast<std::ptrdiff_t>(at),
        ranks.begin() + static_cast<std::ptrdiff_t>(std::min(at + length, ranks.size()))));
  return lines;
}

std::map<Rank, Cell> cells(const Program& program, int bucket) {
  std::map<Rank, Cell> all;
  std::vector<const Exchange*> groups;
  for (const Exchange& exchange : program.exchanges) {
    const bool repeats =
        exchange.payload == Payload::state || exchange.collective == Collective::all_gather;
    if (exchange.bucket != bucket || repeats) continue;
    if (exchange.due.steps > 1 || exchange.due == after_step(1)) {
      // Beside a rack's own average it is a mark, alone it is the step's exchange.
      const bool beside = std::ranges::any_of(program.exchanges, [&](const Exchange& other) {
        return other.bucket == bucket && other.lane != exchange.lane;
      });
      if (beside) {
        for (const Rank rank : exchange.group) all[rank].star = true;
        continue;
      }
    }
    groups.push_back(&exchange);
  }
  std::ranges::stable_sort(groups, {}, [](const Exchange* e) { return e->group.ranks().front(); });
  std::size_t letter = 0;
  for (const Exchange* exchange : groups) {
    const std::vector<Rank>& ranks = exchange->group.ranks();
    const bool alone = ranks.size() == 1;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      Cell& cell = all[ranks[i]];
      cell.text = alone ? "·" : std::string(1, kLetters[letter % kLetters.size()]);
      cell.colour = alone ? 90 : kColours[letter % kColours.size()];
      if (exchange->collective != Collective::shift || alone) continue;
      const std::size_t back = static_cast<std::size_t>(exchange->shift) % ranks.size();
      cell.text = fmt::format("{}←{}", ranks[i], ranks[(i + ranks.size() - back) % ranks.size()]);
    }
    if (!alone) ++letter;
  }
  return all;
}

GroupPicture::Line plain(const std::string& text) {
  return {text, width_of(text)};
}

// Adds a worker in `room` columns, a star or a blank behind it.
void add_cell(GroupPicture::Line& line, const Cell& cell, int room, bool colour) {
  const std::string text = cell.text.empty() ? " " : cell.text;
  line.text +=
      colour && cell.colour != 0 ? fmt::format("\x1b[{}m{}\x1b[0m", cell.colour, text) : text;
  line.text += std::string(static_cast<std::size_t>(room - width_of(text)), ' ');
  line.text += cell.star ? "*" : " ";
  line.width += room + 1;
}

// Pictures in one row.
std::string row_of(std::span<const GroupPicture> pictures) {
  std::size_t height = 0;
  for (const GroupPicture& picture : pictures) height = std::max(height, picture.lines.size());
  std::string text;
  for (std::size_t y = 0; y < height; ++y) {
    std::string line;
    for (const GroupPicture& picture : pictures) {
      const auto part = y < picture.lines.size() ? picture.lines[y] : GroupPicture::Line{};
      line += part.text;
      line += std::string(static_cast<std::size_t>(picture.width() - part.width + kGap), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + "\n";
}

}  // namespace

int GroupPicture::width() const {
  int widest = 0;
  for (const Line& line : lines) widest = std::max(widest, line.width);
  return widest;
}

GroupPicture draw_groups(const std::string& title, const Program& program, int bucket,
                         const World& world, const GroupStyle& style) {
  const std::map<Rank, Cell> all = cells(program, bucket);
  if (all.empty()) return {{plain(title), plain("nothing travels:"), plain("each trains alone")}};
  GroupPicture picture{{plain(title)}};
  int room = 1;
  for (const auto& [rank, cell] : all) room = std::max(room, width_of(cell.text));
  const std::size_t label_room = fmt::format("{0}-{0}", world.ranks().ranks().back()).size();
  int drawn = 0;
  for (const Group& row : rows(world)) {
    if (drawn >= style.most) break;
    const std::string label = fmt::format("{}-{}", row.ranks().front(), row.ranks().back());
    GroupPicture::Line line = plain(fmt::format("{:>{}}  ", label, label_room));
    for (const Rank rank : row) {
      if (drawn++ >= style.most) break;
      const auto found = all.find(rank);
      add_cell(line, found == all.end() ? Cell{} : found->second, room, style.colour);
    }
    picture.lines.push_back(std::move(line));
  }
  if (world.size() > style.most)
    picture.lines.push_back(plain(fmt::format("... of {} workers", world.size())));
  return picture;
}

std::string beside(const std::vector<GroupPicture>& pictures, const GroupStyle& style) {
  std::string text;
  for (std::size_t first = 0; first < pictures.size();) {
    std::size_t end = first + 1;
    int used = pictures[first].width();
    while (end < pictures.size() && used + kGap + pictures[end].width() <= style.width)
      used += kGap + pictures[end++].width();
    text += row_of(std::span(pictures).subspan(first, end - first));
    first = end;
  }
  return text;
}

}  // namespace riffle::report
