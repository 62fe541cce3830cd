// Measures a collective of an MPI library as `ringmaster bench` measures ours: the same sizes, the same number of
// operations back to back in a sample, two samples to warm up, the median of the others, one result checked before.
// A sample takes as long as its slowest rank. Prints one JSON object, with the names of `ringmaster bench --json`.
//
//   mpicxx.openmpi -O2 -std=c++20 mpi_bench.cpp -o mpi_bench && mpirun.openmpi -np 8 ./mpi_bench all_reduce 1048576 20
#include "runtime/samples/sample_hash.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

enum kind { all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter, barrier, kinds };
constexpr const char* names[kinds] = {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter",
                                      "all_to_all", "gather", "scatter",   "barrier"};
constexpr int root = 0;
constexpr uint64_t most = 1000; // of the inputs: small whole numbers, so that sums are exact in any order

struct bench {
  kind what;
  uint64_t ranks, rank;
  uint64_t count; // elements: of the whole for all_reduce, reduce and broadcast, of one rank's block for the others
  std::vector<float> input, output;

  bool has_blocks() const { return what >= all_gather && what <= scatter; }
  uint64_t input_count() const {
    if (what == barrier || (what == scatter && rank != root))
      return 0;
    return what == reduce_scatter || what == all_to_all || what == scatter ? count * ranks : count;
  }
  uint64_t output_count() const {
    if (what == barrier || ((what == reduce || what == gather) && rank != root))
      return 0;
    return what == all_gather || what == all_to_all || what == gather ? count * ranks : count;
  }
  uint64_t bytes() const { return what == barrier ? 0 : count * (has_blocks() ? ranks : 1) * sizeof(float); }

  void run() {
    auto in = input.data();
    auto out = output.data();
    auto n = static_cast<int>(count);
    auto world = MPI_COMM_WORLD;
    switch (what) {
      case all_reduce: MPI_Allreduce(in, out, n, MPI_FLOAT, MPI_SUM, world); break;
      case reduce: MPI_Reduce(in, out, n, MPI_FLOAT, MPI_SUM, root, world); break;
      case broadcast: MPI_Bcast(out, n, MPI_FLOAT, root, world); break; // in place: the root's output is its input
      case all_gather: MPI_Allgather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, world); break;
      case reduce_scatter: MPI_Reduce_scatter_block(in, out, n, MPI_FLOAT, MPI_SUM, world); break;
      case all_to_all: MPI_Alltoall(in, n, MPI_FLOAT, out, n, MPI_FLOAT, world); break;
      case gather: MPI_Gather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, root, world); break;
      case scatter: MPI_Scatter(in, n, MPI_FLOAT, out, n, MPI_FLOAT, root, world); break;
      default: MPI_Barrier(world);
    }
  }

  static float value(uint64_t of_rank, uint64_t index) {
    using namespace ringmaster;
    return static_cast<float>(sample_whole_number(sample_hash(sample_seed(of_rank), index), most));
  }

  float expected(uint64_t i) const {
    auto sum = [&](uint64_t index) {
      float result = 0;
      for (uint64_t r = 0; r < ranks; ++r)
        result += value(r, index);
      return result;
    };
    switch (what) {
      case all_reduce:
      case reduce: return sum(i);
      case reduce_scatter: return sum(rank * count + i);
      case all_gather:
      case gather: return value(i / count, i % count);
      case all_to_all: return value(i / count, rank * count + i % count);
      case scatter: return value(root, rank * count + i);
      default: return value(root, i);
    }
  }

  void fill() {
    input.resize(input_count());
    output.assign(output_count(), -1);
    for (uint64_t i = 0; i < input.size(); ++i)
      input[i] = value(rank, i);
    if (what == broadcast && rank == root)
      output = input;
  }

  /// Elements that are wrong, on all ranks together.
  uint64_t count_wrong() const {
    uint64_t mine = 0, all = 0;
    for (uint64_t i = 0; i < output.size(); ++i)
      mine += output[i] != expected(i) ? 1 : 0;
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
  }

  /// Microseconds an operation, of the slowest rank.
  double sample(uint64_t operations) {
    MPI_Barrier(MPI_COMM_WORLD);
    auto start = MPI_Wtime();
    for (uint64_t i = 0; i < operations; ++i)
      run();
    double mine = (MPI_Wtime() - start) * 1e6 / static_cast<double>(operations), slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
  }
};

double percentile(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size()))) - 1];
}

/// Returns whether the result was right.
bool measure(bench& x, uint64_t samples) {
  x.fill();
  x.run();
  auto wrong = x.count_wrong();
  auto moved = std::max<uint64_t>(x.bytes() * x.ranks, 1);
  auto operations = std::clamp<uint64_t>((uint64_t{64} << 20) / moved, 2, 256); // as in tools/bench/bench.cpp
  std::vector<double> times;
  for (uint64_t i = 0; i < samples + 2; ++i)
    if (auto time = x.sample(operations); i >= 2)
      times.push_back(time);
  std::sort(times.begin(), times.end());
  auto median = percentile(times, 0.5);
  auto algbw = static_cast<double>(x.bytes()) / median / 1e3, n = static_cast<double>(x.ranks);
  auto factor = x.what == all_reduce ? 2 * (n - 1) / n : x.has_blocks() ? (n - 1) / n : 1;
  auto reduces = x.what == all_reduce || x.what == reduce || x.what == reduce_scatter;
  auto rooted = x.what == reduce || x.what == broadcast || x.what == gather || x.what == scatter;
  if (x.rank == 0)
    std::printf(R"({"kind":"%s","algorithm":"%s","devices":%d,"size":%llu,"count":%llu,"type":"float32","redop":"%s",)"
                R"("root":%d,"in_place":%s,"time":%.3f,"algbw":%.6g,"busbw":%.6g,"wrong":%llu,"p50":%.3f,"p99":%.3f})"
                "\n",
                names[x.what],
#ifdef OPEN_MPI
                "openmpi",
#else
                "mpich",
#endif
                static_cast<int>(x.ranks), static_cast<unsigned long long>(x.bytes()),
                static_cast<unsigned long long>(x.count), reduces ? "sum" : "none", rooted ? root : -1,
                x.what == broadcast ? "true" : "false", median, algbw, algbw * factor,
                static_cast<unsigned long long>(wrong), median, percentile(times, 0.99));
  return wrong == 0;
}

int usage(int rank) {
  if (rank == 0)
    std::fprintf(stderr, "usage: mpi_bench KIND BYTES SAMPLES, with a kind of `ringmaster bench`, up to 4 GiB and one "
                         "sample or more\n");
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  auto name = argc == 4 ? std::find(names, names + kinds, std::string_view{argv[1]}) : names + kinds;
  auto bytes = argc == 4 ? std::strtoull(argv[2], nullptr, 10) : 0;
  auto samples = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 0;
  int status = 0;
  if (name == names + kinds || samples == 0 || bytes > uint64_t{4} << 30) {
    status = usage(rank);
  } else {
    bench x{static_cast<kind>(name - names), static_cast<uint64_t>(ranks), static_cast<uint64_t>(rank), 0, {}, {}};
    x.count = bytes / sizeof(float) / (x.has_blocks() ? x.ranks : 1);
    status = measure(x, samples) ? 0 : 1;
  }
  MPI_Finalize();
  return status;
}
