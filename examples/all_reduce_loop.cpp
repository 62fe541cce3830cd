// All-reduces over all devices, again and again, each result compared with the sum. Kill and restart what you like
// while it runs, as `./run ha` does: it reports rounds that took longer than usual.
//
//   build/release/examples/all_reduce_loop --seconds 5
//
// prints "9120 rounds, all right, in 5.0 s; 0 took longer than 100 ms"
#include <ringmaster/client.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

using namespace ringmaster;
using namespace std::chrono_literals;

static double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>{std::chrono::steady_clock::now() - start}.count();
}

static void run(cluster& home, double seconds, const std::string& end_file) {
  constexpr uint64_t count = 4096;
  const auto ranks = static_cast<uint32_t>(home.devices(4, 30s).value().size());
  auto communicator = client{home}.make_communicator(ranks).value();
  auto inputs = communicator.allocate<float>(count).value(), outputs = communicator.allocate<float>(count).value();
  collective_call call{.type = datatype_of<float>(), .count = count};
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    call.inputs.push_back(inputs[rank].address());
    call.outputs.push_back(outputs[rank].address());
  }
  std::printf("%u devices, %lu float32 each\n", ranks, count);
  uint64_t round = 0, gaps = 0;
  for (const auto start = std::chrono::steady_clock::now();; ++round) {
    if (end_file.empty() ? seconds_since(start) >= seconds : std::filesystem::exists(end_file)) {
      std::printf("%lu rounds, all right, in %.1f s; %lu took longer than 100 ms\n", round, seconds_since(start), gaps);
      return;
    }
    const auto round_start = std::chrono::steady_clock::now();
    for (uint32_t rank = 0; rank < ranks; ++rank)
      inputs[rank].write(std::vector<float>(count, static_cast<float>(round % 1000 + rank))).value();
    communicator.enqueue(call).value();
    communicator.wait(60s).value();
    const auto expected = static_cast<float>(ranks * (round % 1000) + ranks * (ranks - 1) / 2);
    for (auto& output : outputs)
      for (auto value : output.read<float>().value())
        if (value != expected)
          throw std::runtime_error{"round " + std::to_string(round) + " is wrong"};
    if (const auto took = seconds_since(round_start); took > 0.1 && ++gaps > 0)
      std::printf("round %lu is right, and took %.2f s\n", round, took);
    std::fflush(stdout);
  }
}

int main(int argc, char** argv) {
  const program_options options{.own_options = {"--seconds", "--until"}, .devices_min = 4};
  return run_main(argc, argv, options, [](cluster* home, const program_arguments& given) {
    run(*home, given.values.empty() ? 5 : std::atof(given.value_of("--seconds").c_str()), given.value_of("--until"));
  });
}
