#include "tools/bench/bench_options.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule/request_of.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace ringmaster;

TEST_CASE("bench: an algorithm that is not there is refused before anything runs") {
  auto refused = [](std::vector<std::string> args) {
    bench_arguments read;
    option_table table{"ringmaster bench"};
    read.add_to(table);
    REQUIRE(!table.read(args));
    auto parsed = read.options();
    REQUIRE(!parsed.engaged());
    return render(parsed.error());
  };
  CHECK(refused({"--algorithm", "rign"}).find("there is no algorithm \"rign\" for all_reduce; there are: ring, ") == 0);
}

TEST_CASE("bench: uneven blocks have the mean's size on average, whatever the number of ranks, and need a v-variant") {
  for (std::string kind : {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})
    for (uint32_t devices = 2; devices < 9; ++devices) {
      CAPTURE(kind);
      CAPTURE(devices);
      bench_arguments read;
      option_table table{"ringmaster bench"};
      read.add_to(table);
      REQUIRE(!table.read(std::vector<std::string>{kind, "--uneven", "--devices", std::to_string(devices)}));
      auto x = read.options();
      REQUIRE(x);
      for (uint64_t count : {0, 1, 7, 64}) {
        const auto request = request_of(collective_of(*x, count), devices, 0);
        REQUIRE(!check_request(x->kind, request));
        REQUIRE(!request.counts.empty());
        CHECK(request.counts.front() == 0);
        CHECK(request.counts[devices - 1] == 2 * count);
        for (size_t row = 0; row < request.counts.size(); row += devices)
          CHECK(std::accumulate(request.counts.begin() + row, request.counts.begin() + row + devices, uint64_t{0})
                == devices * count);
      }
    }
  bench_arguments read;
  option_table table{"ringmaster bench"};
  read.add_to(table);
  REQUIRE(!table.read(std::vector<std::string>{"all_reduce", "--uneven"}));
  CHECK(render(read.options().error()) == "--uneven: ranks have no blocks of their own in all_reduce");
}
