#include "tools/bench/bench_data.hpp"
#include "tools/bench/bench_options.hpp"

#include "messages/errc.hpp"
#include "runtime/reduction/reducer.hpp"
#include "runtime/reduction/reduction.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

TEST_CASE("bench: what it holds a reduction's result against is what reducing its inputs gives") {
  constexpr uint64_t count = 9;
  for (auto type : {proto::FLOAT16, proto::BFLOAT16, proto::FLOAT8_E4M3, proto::FLOAT8_E5M2, proto::FLOAT32,
                    proto::INT8, proto::UINT64})
    for (auto op : {gpu_sim::SUM, gpu_sim::AVG, gpu_sim::PROD, gpu_sim::MIN, gpu_sim::MAX})
      for (uint32_t devices : {2u, 3u, 8u}) {
        CAPTURE(name_of(type));
        CAPTURE(name_of(op));
        CAPTURE(devices);
        bench_options x;
        x.datatype = type;
        x.op = op;
        x.devices = devices;
        std::vector<std::vector<std::byte>> inputs;
        std::vector<const std::byte*> starts;
        for (uint32_t rank = 0; rank < devices; ++rank)
          inputs.push_back(bench_input(type, rank, count));
        for (auto& input : inputs)
          starts.push_back(input.data());
        std::vector<std::byte> found(count * size_of(type));
        reducer::of(type, op)->many(starts, found.data(), count, true, devices);
        CHECK(count_wrong(x, count, 0, found.data(), count) == 0);
        found[size_of(type)] ^= std::byte{1};
        CHECK(count_wrong(x, count, 0, found.data(), count) == 1);
      }
}

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
