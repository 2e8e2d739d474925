#include "lab_tables.h"

#include <fmt/format.h>

namespace riffle::cli {

namespace {

// The root has no uplink.
bool is_there(const lab::Lab& lab, std::size_t port) {
  return lab.wiring().ports[port].bandwidth > 0;
}

double share(lab::Nanoseconds busy, Seconds time) {
  return time.count() > 0 ? static_cast<double>(busy) * 1e-9 / time.count() : 0;
}

}  // namespace

report::Table stats_table(const lab::Lab& lab, Seconds time) {
  report::Table table{{{"link", false},
                       {"bandwidth"},
                       {"bytes"},
                       {"packets"},
                       {"dropped"},
                       {"lost"},
                       {"busy"},
                       {"most waiting"}},
                      {}};
  const auto counters = lab.network().counters();
  for (std::size_t i = 0; i < counters.size(); ++i)
    if (is_there(lab, i))
      table.rows.push_back({lab.wiring().ports[i].name,
                            print(Bandwidth{lab.wiring().ports[i].bandwidth}),
                            std::to_string(counters[i].bytes), std::to_string(counters[i].packets),
                            std::to_string(counters[i].dropped), std::to_string(counters[i].lost),
                            fmt::format("{:.1f} %", 100 * share(counters[i].busy, time)),
                            print(Bytes{counters[i].most_waiting})});
  return table;
}

Json stats_json(const lab::Lab& lab, Seconds time) {
  Json links = Json::array();
  const auto counters = lab.network().counters();
  for (std::size_t i = 0; i < counters.size(); ++i)
    if (is_there(lab, i))
      links.push_back({{"link", lab.wiring().ports[i].name},
                       {"bandwidth", lab.wiring().ports[i].bandwidth},
                       {"bytes", counters[i].bytes},
                       {"packets", counters[i].packets},
                       {"dropped", counters[i].dropped},
                       {"lost", counters[i].lost},
                       {"busy_share", share(counters[i].busy, time)},
                       {"most_waiting_bytes", counters[i].most_waiting}});
  return links;
}

report::Table check_table(const std::vector<lab::Measured>& results) {
  report::Table table{
      {{"what", false}, {"between", false}, {"expected"}, {"measured"}, {"difference"}}, {}};
  for (const lab::Measured& each : results)
    table.rows.push_back({each.what, each.between, lab::spell(each, each.expected),
                          lab::spell(each, each.measured),
                          fmt::format("{:+.1f} %", 100 * each.difference())});
  return table;
}

Json check_json(const std::vector<lab::Measured>& results) {
  Json list = Json::array();
  for (const lab::Measured& each : results)
    list.push_back({{"what", each.what},
                    {"between", each.between},
                    {"unit", each.is_rate ? "bytes_per_second" : "seconds"},
                    {"expected", each.expected},
                    {"measured", each.measured},
                    {"difference", each.difference()}});
  return list;
}

}  // namespace riffle::cli
