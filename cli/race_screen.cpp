#include "race_screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "riffle/units.h"

namespace riffle::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t name_width = 21;
constexpr std::size_t bar_width = 12;
constexpr int least_width = 40;

std::string cut(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  return text.substr(0, width - 1) + "~";
}

int screen_width() {
  constexpr int usual = 80;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return usual;
  return std::max<int>(size.ws_col, least_width);
}

std::string bar(Step step, Step steps) {
  const auto done = static_cast<std::size_t>(
      steps > 0 ? std::min<Step>(bar_width, step * static_cast<Step>(bar_width) / steps) : 0);
  return std::string(done, '#') + std::string(bar_width - done, '.');
}

std::string line(const std::string& name, const std::string& step, const std::string& loss,
                 const std::string& rate, const std::string& exposed, const std::string& accuracy,
                 const std::string& bar, int width) {
  const std::string text =
      fmt::format("{:<{}} {:>9} {:>7} {:>7} {:>8} {:>7} {}", cut(name, name_width), name_width,
                  step, loss, rate, exposed, accuracy, bar);
  return text.substr(0, static_cast<std::size_t>(width));
}

double seconds_after(const race::Reports& reports, Step step) {
  return step == 0 ? 0
                   : reports.ranks().front().steps()[static_cast<std::size_t>(step - 1)].seconds;
}

}  // namespace

std::string print_race_head(int width) {
  return line("contender", "step", "loss", "steps/s", "exposed", "accur.", "", width);
}

std::string print_row(const RaceRow& row, int width) {
  if (row.steps == 0 || row.step == 0)
    return fmt::format("{:<{}} {}", cut(row.name, name_width), name_width, row.state)
        .substr(0, static_cast<std::size_t>(width));
  return line(row.name, fmt::format("{}/{}", row.step, row.steps),
              row.loss ? fmt::format("{:.4f}", *row.loss) : "-",
              row.seconds_per_step > 0 ? fmt::format("{:.3g}", 1 / row.seconds_per_step) : "-",
              row.exposed ? print(Seconds(*row.exposed)) : "-",
              row.accuracy ? fmt::format("{:.1f} %", 100 * *row.accuracy) : "-",
              row.state.empty() ? bar(row.step, row.steps) : row.state, width);
}

void update(RaceRow& row, const race::Reports& reports, Step steps, double dilate) {
  constexpr Step looked_at = 10;
  row.steps = steps;
  row.step = reports.steps();
  row.state = row.step == 0 ? "starts" : "";
  if (row.step == 0) return;
  const Step from = std::max<Step>(0, row.step - looked_at);
  const auto count = static_cast<double>(row.step - from);
  const race::RankReport& first = reports.ranks().front();
  row.seconds_per_step =
      (seconds_after(reports, row.step) - seconds_after(reports, from)) / count / dilate;
  row.loss.reset();
  row.exposed.reset();
  for (Step i = from; i < row.step; ++i) {
    const race::ReportedStep& step = first.steps()[static_cast<std::size_t>(i)];
    if (step.loss) row.loss = row.loss.value_or(0) + *step.loss / count;
    if (step.exposed) row.exposed = row.exposed.value_or(0) + *step.exposed / count / dilate;
  }
  if (!first.evaluations().empty()) row.accuracy = first.evaluations().back().accuracy;
}

RaceScreen::RaceScreen(const std::vector<std::string>& names)
    : terminal_(::isatty(STDERR_FILENO) == 1) {
  for (const std::string& name : names) rows_.push_back({.name = name});
  if (terminal_) draw();
}

void RaceScreen::show(std::size_t index, bool at_once) {
  const auto now = Clock::now();
  if (now < next_ && !at_once) return;
  next_ = now + (terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(5));
  if (terminal_) return draw();
  if (rows_[index].step > 0 || at_once) fmt::print(stderr, "{}\n", print_row(rows_[index], 100));
  std::fflush(stderr);
}

void RaceScreen::draw() {
  const int width = screen_width() - 1;
  std::string text;
  if (drawn_ > 0) text += fmt::format("\x1b[{}A", drawn_);
  text += fmt::format("\r\x1b[K\x1b[1m{}\x1b[0m\n", print_race_head(width));
  for (const RaceRow& row : rows_) text += fmt::format("\r\x1b[K{}\n", print_row(row, width));
  drawn_ = static_cast<int>(rows_.size()) + 1;
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
}

}  // namespace riffle::cli
