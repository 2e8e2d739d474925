#include "measure/host_facts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/json.h"

namespace riffle::measure {
namespace {

namespace fs = std::filesystem;

// The words of a small file; none where it cannot be read.
std::vector<std::string> words_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

double number_in(const fs::path& file, std::size_t place = 0) {
  const std::vector<std::string> words = words_of(file);
  if (place >= words.size()) return 0;
  return std::strtod(words[place].c_str(), nullptr);
}

Device read_device(const fs::path& folder) {
  constexpr double kMegabit = 1e6 / 8;
  Device device{
      .name = folder.filename(), .mtu = static_cast<int>(number_in(folder / "mtu")), .speed = {}};
  std::error_code ignored;
  // Devices without hardware name a speed that means nothing.
  if (fs::exists(folder / "device", ignored))
    device.speed = {std::max(number_in(folder / "speed"), 0.0) * kMegabit};
  return device;
}

bool is_up(const fs::path& folder) {
  const std::vector<std::string> state = words_of(folder / "operstate");
  return !state.empty() && state.front() == "up";
}

Json json_of(const Device& device) {
  return {{"name", device.name}, {"mtu", device.mtu}, {"speed", device.speed.bytes_per_second}};
}

Device device_of(const JsonReader& reader) {
  return {.name = reader.at("name").text(),
          .mtu = static_cast<int>(reader.at("mtu").integer(0, 1'000'000)),
          .speed = {reader.at("speed").number_at_least(0)}};
}

}  // namespace

HostFacts read_host_facts(const std::string& interface, const std::string& address) {
  constexpr std::size_t kMost = 2;  // least, first, most
  HostFacts facts;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) facts.name = name.data();
  facts.address = address;
  std::error_code error;
  for (const auto& each : fs::directory_iterator("/sys/class/net", error)) {
    const std::string device = each.path().filename();
    if (device == interface)
      facts.used = read_device(each.path());
    else if (device != "lo" && is_up(each.path()))
      facts.others.push_back(read_device(each.path()));
  }
  std::ranges::sort(facts.others, {}, &Device::name);
  const fs::path settings = "/proc/sys/net/ipv4";
  facts.receive_buffer = {static_cast<std::int64_t>(number_in(settings / "tcp_rmem", kMost))};
  facts.send_buffer = {static_cast<std::int64_t>(number_in(settings / "tcp_wmem", kMost))};
  for (const std::string& word : words_of(settings / "tcp_congestion_control"))
    facts.congestion_control = word;
  return facts;
}

std::string to_json(const HostFacts& facts) {
  Json json{{"name", valid_utf8(facts.name)},
            {"address", facts.address},
            {"interface", json_of(facts.used)},
            {"other_interfaces", Json::array()},
            {"tcp_receive_buffer", facts.receive_buffer.count},
            {"tcp_send_buffer", facts.send_buffer.count},
            {"tcp_congestion_control", facts.congestion_control}};
  for (const Device& device : facts.others) json["other_interfaces"].push_back(json_of(device));
  return json.dump();
}

HostFacts host_facts_from_json(std::string_view text) {
  constexpr std::int64_t kAny = std::int64_t{1} << 60;
  const Json json = parse_json(text, "a host's facts");
  const JsonReader reader(json, "a host's facts");
  HostFacts facts{.name = reader.at("name").text(),
                  .address = reader.at("address").text(),
                  .used = device_of(reader.at("interface")),
                  .others = {},
                  .receive_buffer = {reader.at("tcp_receive_buffer").integer(0, kAny)},
                  .send_buffer = {reader.at("tcp_send_buffer").integer(0, kAny)},
                  .congestion_control = reader.at("tcp_congestion_control").text()};
  const JsonReader others = reader.at("other_interfaces");
  for (std::size_t i = 0; i < others.size(); ++i) facts.others.push_back(device_of(others.at(i)));
  return facts;
}

}  // namespace riffle::measure
