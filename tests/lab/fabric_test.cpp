// The network without a network: packets in, packets out, at exact times.
#include "lab/fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "lab/flow_model.h"
#include "model/slowed_down.h"
#include "riffle/error.h"

namespace riffle::lab {
namespace {

Wiring wiring_of(const char* spec) {
  return wire(parse_cluster(spec), 1);
}

Packet packet(int from, int to, int payload, std::uint64_t flow = 1) {
  Packet made;
  made.bytes.resize(1);
  made.from = from;
  made.to = to;
  made.payload = payload;
  made.flow = flow * 1000 + static_cast<std::uint64_t>(from * 50 + to);
  return made;
}

struct Arrival {
  Nanoseconds at;
  int from;
  int to;
  int payload;
};

std::vector<Arrival> run(Fabric& fabric, Nanoseconds until = Fabric::never - 1) {
  std::vector<Arrival> arrivals;
  fabric.run(until, [&](const Packet& each, Nanoseconds due) {
    arrivals.push_back({due, each.from, each.to, each.payload});
  });
  return arrivals;
}

TEST(Fabric, APacketTakesLatencyAndItsTimeOnTheWire) {
  Fabric fabric(wiring_of("flat:2,latency=1ms,bandwidth=8Mbps"));  // a byte a microsecond
  fabric.send(packet(0, 1, 1000), 0);
  fabric.send(packet(0, 1, 0), 0);  // an acknowledgement costs nothing, but waits its turn
  const auto arrivals = run(fabric);
  ASSERT_EQ(arrivals.size(), 2U);
  EXPECT_EQ(arrivals[0].at, 2'000'000);
  EXPECT_EQ(arrivals[1].at, 2'000'000);
  EXPECT_EQ(arrivals[1].payload, 0);
}

TEST(Fabric, LatenciesAreTheClusters) {
  const Cluster cluster =
      parse_cluster("sites:2x2x2,inner=1ms/1Gbps,outer=2ms/1Gbps,wan=20ms/1Gbps");
  for (Rank from = 0; from < 8; ++from)
    for (Rank to = 0; to < 8; ++to) {
      if (from == to) continue;
      Fabric fabric(wire(cluster, 1));
      fabric.send(packet(from, to, 0), 5);
      EXPECT_EQ(run(fabric).at(0).at, 5 + std::llround(cluster.latency(from, to).count() * 1e9));
    }
}

// What a switch must not do: give a receiver's link to a packet that still queues at its sender.
TEST(Fabric, AReceiverIsFreeUntilAPacketsHeadReachesIt) {
  Fabric fabric(wiring_of("flat:4,latency=1ms,bandwidth=8Mbps"));
  fabric.send(packet(0, 1, 100'000), 0);  // keeps worker0 busy for 100 ms
  fabric.send(packet(0, 2, 100), 0);      // queues behind it
  fabric.send(packet(3, 2, 50'000), 0);   // finds worker2 idle
  std::map<int, Nanoseconds> at;
  for (const Arrival& each : run(fabric)) at[each.from * 10 + each.to] = each.at;
  EXPECT_EQ(at[32], 51'000'000);
  EXPECT_EQ(at[1], 101'000'000);
  EXPECT_EQ(at[2], 101'100'000);
}

TEST(Fabric, FlowsOfASenderTakeTurns) {
  Fabric fabric(wiring_of("flat:3,latency=1ms,bandwidth=8Mbps"));
  for (int i = 0; i < 10; ++i) fabric.send(packet(0, 1, 1500, 1), 0);
  fabric.send(packet(0, 2, 100, 2), 0);  // a heartbeat
  const auto arrivals = run(fabric);
  // Behind the one that is being sent and one turn of the other flow, not behind all of them.
  const auto heartbeat = std::ranges::find(arrivals, 2, &Arrival::to);
  ASSERT_NE(heartbeat, arrivals.end());
  EXPECT_LE(heartbeat->at, 1'000'000 + 3 * 1'500'000 + 100'000);
}

// Four flows over one uplink, each always with something to send: a quarter each.
TEST(Fabric, AnUplinkIsSharedByWhoUsesIt) {
  Fabric fabric(wiring_of("racks:2x4,inner=1ms/80Mbps,outer=1ms/8Mbps"));
  std::map<int, double> got;
  Nanoseconds now = 0;
  // At the pace of a receiver's answer: each sends a packet when its last has arrived.
  for (int host = 0; host < 4; ++host)
    for (int i = 0; i < 8; ++i) fabric.send(packet(host, host + 4, 1500), 0);
  while (now < 10'000'000'000) {
    now = fabric.next();
    for (const Arrival& each : run(fabric, now)) {
      got[each.from] += each.payload;
      fabric.send(packet(each.from, each.to, 1500), now);
    }
  }
  for (const auto& [host, bytes] : got) EXPECT_NEAR(bytes, 10e6 / 4, 10e6 / 4 * 0.02) << host;
}

TEST(Fabric, AFullQueueDropsWhatComesLast) {
  Wiring wiring = wiring_of("flat:3,latency=1ms,bandwidth=8Mbps");
  wiring.ports[5].limit = 10'000;  // down to worker2
  Fabric fabric(wiring);
  for (int i = 0; i < 20; ++i)
    for (const int from : {0, 1}) fabric.send(packet(from, 2, 1000), 0);
  const auto arrivals = run(fabric);
  EXPECT_LT(arrivals.size(), 40U);
  EXPECT_EQ(static_cast<std::int64_t>(arrivals.size()) + fabric.counters(5).dropped, 40);
  EXPECT_LE(fabric.counters(5).most_waiting, 10'000);
}

TEST(Fabric, LossIsByChanceAndOneWayEach) {
  Fabric fabric(wiring_of("flat:2,latency=1ms,bandwidth=1Gbps"));
  fabric.set_loss(0, 0.01);
  for (int i = 0; i < 100'000; ++i) fabric.send(packet(0, 1, 1), i * 1000);
  const double arrived = static_cast<double>(run(fabric).size());
  EXPECT_NEAR(arrived / 100'000, 0.99, 0.001);
  EXPECT_EQ(fabric.counters(0).lost + static_cast<std::int64_t>(arrived), 100'000);
  fabric.send(packet(1, 0, 1), Nanoseconds{1} << 40);
  EXPECT_EQ(run(fabric).size(), 1U);
}

TEST(Fabric, JitterDelaysButNothingOvertakes) {
  Fabric fabric(wiring_of("flat:2,latency=1ms,bandwidth=1Gbps"));
  fabric.set_jitter(0, 500'000);
  for (int i = 0; i < 1000; ++i) fabric.send(packet(0, 1, i % 7 == 0 ? 0 : 1000), i * 2'000'000);
  Nanoseconds last = 0;
  double sum = 0;
  int i = 0;
  for (const Arrival& each : run(fabric)) {
    EXPECT_GE(each.at, last);
    last = each.at;
    sum += static_cast<double>(each.at - i++ * 2'000'000 - 1'000'000);
  }
  EXPECT_NEAR(sum / 1000, 250'000 + 8000, 20'000);
}

TEST(Fabric, TrafficOfOthersLeavesTheRest) {
  Fabric fabric(wiring_of("flat:2,latency=1ms,bandwidth=80Mbps"));  // 10 bytes a microsecond
  fabric.set_load(1 * 2 + 1, 6e6, 0);                               // of the 10 MB/s
  double got = 0;
  Nanoseconds now = 0;
  for (int i = 0; i < 10; ++i) fabric.send(packet(0, 1, 1500), 0);
  while (now < 10'000'000'000) {
    now = fabric.next();
    for (const Arrival& each : run(fabric, now)) {
      got += each.payload;
      fabric.send(packet(0, 1, 1500), now);
    }
  }
  EXPECT_NEAR(got / 10, 4e6, 0.2e6);
  fabric.set_load(3, 0, now);
  EXPECT_GT(run(fabric, now + 1'000'000'000).size(), 0U);
  EXPECT_EQ(fabric.next(), Fabric::never);  // an end that ends
}

// Where a host sends, too: a link's load is a rate, not one flow among others.
TEST(Fabric, TrafficOfOthersTakesItsRateOfAHostsLink) {
  for (const double load : {9e6, 50e6}) {
    Fabric fabric(wiring_of("flat:2,latency=1ms,bandwidth=80Mbps"));
    fabric.set_load(2, load, 0);  // of the 10 MB/s up from worker1
    double got = 0;
    for (int i = 0; i < 40; ++i) fabric.send(packet(1, 0, 1500), 0);
    for (Nanoseconds now = 0; now < 10'000'000'000;) {
      now = fabric.next();
      for (const Arrival& each : run(fabric, now)) {
        got += each.payload;
        fabric.send(packet(1, 0, 1500), now);
      }
    }
    EXPECT_NEAR(got / 10, std::max(0.0, 10e6 - load), 0.2e6) << load;
  }
}

// However much others want, there are only so many of their pieces to count.
TEST(Fabric, TrafficOfOthersDoesNotDrownTheSwitch) {
  Fabric fabric(wiring_of("flat:2,latency=1ms,bandwidth=8Mbps"));
  for (int port = 0; port < 4; ++port) fabric.set_load(port, 1e12, 0);
  Nanoseconds now = 0;
  int moments = 0;
  for (; now < 1'000'000'000; ++moments) {
    now = fabric.next();
    run(fabric, now);
    ASSERT_LT(moments, 100'000);
  }
  for (int port = 0; port < 4; ++port) fabric.set_load(port, 0, now);
  run(fabric, now + 1'000'000'000);
  EXPECT_EQ(fabric.next(), Fabric::never);
}

TEST(Fabric, ACutLinkCarriesNothingUntilItIsRepaired) {
  Fabric fabric(wiring_of("flat:2,latency=1ms,bandwidth=8Mbps"));
  fabric.cut(3);
  fabric.send(packet(0, 1, 1), 0);
  fabric.send(packet(1, 0, 1), 0);  // the other way is not cut
  EXPECT_EQ(run(fabric).size(), 1U);
  fabric.repair(3);
  fabric.send(packet(0, 1, 1), 10'000'000);
  EXPECT_EQ(run(fabric).size(), 1U);
  EXPECT_EQ(fabric.counters(3).dropped, 1);
}

TEST(Fabric, AMeasuredPairIsAWireOfItsOwn) {
  Cluster cluster = parse_cluster("flat:3,latency=1ms,bandwidth=8Mbps");
  cluster.pairs.push_back({.from = 0, .to = 1, .link = {milliseconds(7), Bandwidth{1e5}}});
  Fabric fabric(wire(cluster, 1));
  fabric.send(packet(0, 1, 1000), 0);
  fabric.send(packet(1, 0, 1000), 0);
  const auto arrivals = run(fabric);
  EXPECT_EQ(arrivals[0].at, 2'000'000);
  EXPECT_EQ(arrivals[1].at, 17'000'000);
}

TEST(Wiring, SlowsDownTimeAndShrinksMessages) {
  const Cluster slow =
      model::slowed_down(parse_cluster("racks:2x2,inner=1ms/1Gbps,outer=2ms/1Gbps"), 4, 2);
  EXPECT_EQ(slow.latency(0, 1), milliseconds(4));
  EXPECT_DOUBLE_EQ(slow.latency(0, 2).count(), 0.012);
  EXPECT_DOUBLE_EQ(slow.workers[0].link.bandwidth.bytes_per_second, 125e6 / 8);
  EXPECT_THROW(wire(parse_cluster("fit:4,a=1ms,b=1ns"), 1), UsageError);
}

TEST(Wiring, HasRoomForWhatEventsMakeOfTheNetwork) {
  const Cluster cluster = parse_cluster("racks:2x2,inner=1ms/100Mbps,outer=2ms/200Mbps");
  Wiring wiring = wire(cluster, 1);
  const std::int64_t before = wiring.window;
  make_room(wiring, cluster, 1, parse_changes("at=1s,link=rack0,bandwidth=1Mbps", "test"));
  EXPECT_EQ(wiring.window, before);
  make_room(wiring, cluster, 1, parse_changes("at=1s,link=rack0,latency=400ms", "test"));
  constexpr double product = 0.402 * 100e6 / 8;  // there and back, at the rate of a worker's link
  EXPECT_GE(static_cast<double>(wiring.window), 2 * product);
  for (const Port& port : wiring.ports)
    EXPECT_GE(static_cast<double>(port.limit), port.bandwidth > 0 ? product : 0) << port.name;
  EXPECT_EQ(wiring.ports[0].latency, 500'000);  // until the event comes
}

TEST(FlowModel, SharesLinksMaxMinFairly) {
  const Wiring wiring = wiring_of("racks:2x2,inner=1ms/80Mbps,outer=1ms/80Mbps");
  // Two share rack0's uplink; worker2 could take more from worker3 than the rest of its link.
  const auto rates = fair_rates(wiring, {{0, 2, 0}, {1, 2, 0}, {3, 2, 0}});
  for (const double rate : rates) EXPECT_NEAR(rate, 10e6 / 3, 1);
  EXPECT_EQ(fair_rates(wiring, {{0, 2, 0}, {1, 3, 0}, {2, 3, 0}}),
            (std::vector<double>{5e6, 5e6, 5e6}));
  EXPECT_NEAR(time_of(wiring, {{0, 1, 1e6}, {0, 2, 2e6}}).count(), 0.3 + 0.002, 1e-9);
}

}  // namespace
}  // namespace riffle::lab
