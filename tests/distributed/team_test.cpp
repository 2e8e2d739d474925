// Teams of threads: calls in order, groups apart from each other, messages, failures by name.
#include "distributed/team.h"

#include <gtest/gtest.h>

#include <numeric>

#include "distributed/teams.h"
#include "riffle/error.h"

namespace riffle::distributed {
namespace {

using riffle::test::run_ranks;
using test::start;
using test::world_of;

const std::vector<std::string> two_hosts{"a", "a", "b"};

TEST(Team, ReducesIntegersByAnyOperation) {
  for (const std::string name : {"0", "a name that is no number"}) {
    LoopbackWorld loopback(two_hosts);
    run_ranks(loopback, [&](Rank rank) {
      Team team(world_of(loopback, rank), {.name = name, .ranks = {0, 1, 2}});
      const std::pair<Reduction, std::int32_t> wanted[] = {
          {Reduction::sum, 6},     {Reduction::product, 6}, {Reduction::min, 1},
          {Reduction::max, 3},     {Reduction::bit_and, 0}, {Reduction::bit_or, 3},
          {Reduction::bit_xor, 0},
      };
      for (const auto& [reduction, want] : wanted) {
        std::vector<std::int32_t> values(1001, rank + 1);
        start(team, "all_reduce", [&](TeamCall& call) {
          call.collectives().all_reduce(
              call.group(),
              {reinterpret_cast<std::byte*>(values.data()), values.size(), DType::i32},
              call.options(reduction));
        }).get();
        EXPECT_EQ(values, std::vector<std::int32_t>(1001, want)) << name_of(reduction);
      }
    });
  }
}

TEST(Team, ReducesToARootAndExchangesParts) {
  LoopbackWorld loopback(two_hosts);
  run_ranks(loopback, [&](Rank rank) {
    Team team(world_of(loopback, rank), {.name = "0", .ranks = {0, 1, 2}});
    std::vector<float> values(3000, static_cast<float>(rank + 1));
    start(team, "reduce", [&](TeamCall& call) {
      call.collectives().reduce(call.group(), 2, tensor_view(values),
                                call.options(Reduction::mean));
    }).get();
    if (rank == 2) {
      EXPECT_EQ(values, std::vector<float>(3000, 2.0F));
    }
    // Member m gives i + 1 bytes with its number to member i.
    std::vector<std::vector<std::byte>> given(3);
    std::vector<std::vector<std::byte>> got(3);
    std::vector<std::span<const std::byte>> out;
    std::vector<std::span<std::byte>> in;
    for (std::size_t i = 0; i < 3; ++i) {
      given[i].assign(i + 1, static_cast<std::byte>(rank));
      got[i].resize(static_cast<std::size_t>(rank) + 1);
      out.emplace_back(given[i]);
      in.emplace_back(got[i]);
    }
    start(team, "all_to_all", [&](TeamCall& call) {
      call.collectives().all_to_all(call.group(), {.out = out, .in = in}, call.options());
    }).get();
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(got[i], std::vector<std::byte>(static_cast<std::size_t>(rank) + 1,
                                               static_cast<std::byte>(i)));
  });
}

TEST(Team, NamesCallsThatDoNotFitAndStaysBroken) {
  LoopbackWorld loopback(two_hosts);
  run_ranks(loopback, [&](Rank rank) {
    Team team(world_of(loopback, rank), {.name = "0", .ranks = {0, 1, 2}});
    std::vector<float> values(rank == 1 ? 5 : 6);
    for (int repeat = 0; repeat < 2; ++repeat) {
      auto call = start(team, "all_reduce", [&](TeamCall& context) {
        context.collectives().all_reduce(context.group(), tensor_view(values), context.options());
      });
      try {
        call.get();
        ADD_FAILURE() << "rank " << rank << " noticed nothing";
      } catch (const TeamError& error) {
        const std::string text = error.what();
        for (const char* word : {"all_reduce", "sequence number 1", "group 0", "5 f32", "6 f32"})
          EXPECT_NE(text.find(word), std::string::npos) << text;
      }
    }
  });
}

TEST(Team, PartsThatDoNotFitAreNamed) {
  LoopbackWorld loopback(two_hosts);
  run_ranks(loopback, [&](Rank rank) {
    Team team(world_of(loopback, rank), {.name = "7", .ranks = {0, 1, 2}});
    std::vector<std::byte> bytes(16);
    std::vector<std::span<const std::byte>> out(3, std::span(bytes).first(4));
    std::vector<std::span<std::byte>> in(3, std::span(bytes).subspan(8, 4));
    if (rank == 1) out[2] = std::span(bytes).first(3);
    auto call = start(team, "all_to_all", [&](TeamCall& context) {
      context.collectives().all_to_all(context.group(), {.out = out, .in = in}, context.options());
    });
    if (rank != 2) {
      try {
        call.get();  // may have all it needs
      } catch (const TeamError& error) {
        EXPECT_EQ(error.failure(), CommFailure::mismatch) << error.what();
      }
      return;
    }
    EXPECT_THROW(call.get(), TeamError);
  });
}

TEST(Team, ReceivesFromAnybodyAndThenByName) {
  LoopbackWorld loopback(two_hosts);
  run_ranks(loopback, [&](Rank rank) {
    Team team(world_of(loopback, rank), {.name = "0", .ranks = {0, 1, 2}});
    std::vector<std::byte> bytes(1000, static_cast<std::byte>(rank));
    const auto nothing = [](const std::exception_ptr& error) { EXPECT_EQ(error, nullptr); };
    const auto what = [&](int tag) {
      Message::What message;
      message.tag = tag;
      message.data = bytes;
      return message;
    };
    if (rank == 0) {
      Rank sum = 0;
      for (int i = 0; i < 2; ++i) {
        auto message = team.receive(-1, what(0), nothing, Seconds{20});
        EXPECT_TRUE(team.wait(*message, Seconds{20}));
        EXPECT_EQ(bytes[999], static_cast<std::byte>(message->source()));
        sum += message->source();
      }
      EXPECT_EQ(sum, 3);
      auto message = team.receive(1, what(5), nothing, Seconds{20});
      EXPECT_TRUE(team.wait(*message, Seconds{20}));
      EXPECT_EQ(bytes[0], std::byte{1});
    } else {
      for (int i = 0; i < (rank == 1 ? 2 : 1); ++i) {
        auto message = team.send(0, what(i == 0 ? 0 : 5), nothing, Seconds{20});
        EXPECT_TRUE(team.wait(*message, Seconds{20}));
      }
    }
  });
}

TEST(Team, MakingTeamsSendsNothing) {
  LoopbackWorld loopback(two_hosts);
  run_ranks(loopback, [&](Rank rank) {
    const auto world = world_of(loopback, rank);
    for (int i = 0; i < 100; ++i)
      Team(world, {.name = std::to_string(i),
                   .ranks = i % 2 == 0 ? std::vector<Rank>{0, 1, 2} : std::vector<Rank>{rank}})
          .shutdown();
    EXPECT_EQ(test::messages_of(*world), 0);
    Team team(world, {.name = "used", .ranks = {2, 0, 1}});
    start(team, "barrier", [](TeamCall& call) {
      call.collectives().barrier(call.group(), call.options());
    }).get();
    EXPECT_GT(test::messages_of(*world), 0);
  });
}

TEST(Team, AMemberThatStaysAwayIsNamedAtTheTimeoutOfTheCall) {
  LoopbackWorld loopback(two_hosts);
  run_ranks(loopback, [&](Rank rank) {
    if (rank != 0) return;
    Team team(world_of(loopback, rank), {.name = "0", .ranks = {0, 2}});
    team.set_timeout(Seconds{0.3});
    std::vector<float> values(100);
    auto call = start(
        team, "all_reduce",
        [&](TeamCall& context) {
          context.collectives().all_reduce(context.group(), tensor_view(values), context.options());
        },
        false, Seconds{-1});
    try {
      call.get();
      ADD_FAILURE() << "unnoticed";
    } catch (const TeamError& error) {
      EXPECT_EQ(error.failure(), CommFailure::timed_out);
      for (const char* word : {"all_reduce", "sequence number 1", "group 0", "rank 2"})
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  });
}

TEST(Team, OneThatDiesIsNamed) {
  LoopbackWorld loopback(two_hosts);
  run_ranks(loopback, [&](Rank rank) {
    if (rank == 2) return loopback.kill(2);
    Team team(world_of(loopback, rank), {.name = "0", .ranks = {0, 1, 2}});
    auto call = start(team, "barrier", [](TeamCall& context) {
      context.collectives().barrier(context.group(), context.options());
    });
    try {
      call.get();
      ADD_FAILURE() << "unnoticed";
    } catch (const TeamError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 2"), std::string::npos) << error.what();
    }
  });
}

TEST(Team, MonitoredBarrierNamesWhoIsMissing) {
  LoopbackWorld loopback(two_hosts);
  run_ranks(loopback, [&](Rank rank) {
    Team team(world_of(loopback, rank), {.name = "0", .ranks = {0, 1, 2}});
    team.monitored_barrier(Seconds{20}, false);
    if (rank == 2) return;
    try {
      team.monitored_barrier(Seconds{0.3}, true);
      ADD_FAILURE() << "unnoticed";
    } catch (const TeamError& error) {
      const std::string wanted = rank == 0 ? "Ranks 2 failed" : "rank 0";
      EXPECT_NE(std::string(error.what()).find(wanted), std::string::npos) << error.what();
    }
  });
}

}  // namespace
}  // namespace riffle::distributed
