// Averages and sums with factors at the ends of every datatype's range, where all inputs are added at once.
#include "runtime/reduction/reducer.hpp"
#include "runtime/reduction/reduction.hpp"
#include "tests/support/trials/range_ends.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

std::vector<uint32_t> first_ranks(uint32_t count) {
  std::vector<uint32_t> result;
  for (uint32_t rank = 0; rank < count; ++rank)
    result.push_back(rank);
  return result;
}

/// The inputs of all ranks, as they are added: with PREMUL_SUM times the factor.
std::vector<std::vector<std::byte>> operands(const known_datatype& type, gpu_sim::ReduceOp op, uint32_t ranks,
                                             uint64_t count) {
  std::vector<std::vector<std::byte>> result;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto& values = result.emplace_back(end_values(type, rank, count, ranks));
    if (op == gpu_sim::PREMUL_SUM)
      scale(type.value, end_factor(type, rank), values.data(), values.data(), count);
  }
  return result;
}

template <class T>
T average_of(proto::DataType type, const std::vector<T>& values) {
  std::vector<const std::byte*> inputs;
  for (const auto& x : values)
    inputs.push_back(reinterpret_cast<const std::byte*>(&x));
  T result{};
  reducer::of(type, gpu_sim::AVG)
    ->many(inputs, reinterpret_cast<std::byte*>(&result), 1, true, static_cast<uint32_t>(values.size()));
  return result;
}

} // namespace

TEST_CASE("averages: they and sums with factors are right at the ends of every range, in every instruction set") {
  constexpr uint64_t count = 1037; // several tiles
  for (const auto& type : datatypes())
    for (auto op : {gpu_sim::AVG, gpu_sim::PREMUL_SUM})
      for (uint32_t ranks : {2u, 3u, 4u, 5u, 7u, 8u, 11u, 16u, 100u, 300u}) {
        CAPTURE(type.name);
        CAPTURE(name_of(op));
        CAPTURE(ranks);
        const auto inputs = operands(type, op, ranks, count);
        std::vector<std::vector<std::byte>> raw;
        for (uint32_t rank = 0; rank < ranks; ++rank)
          raw.push_back(end_values(type, rank, count, ranks));
        std::vector<const std::byte*> starts;
        for (auto& x : inputs)
          starts.push_back(x.data());
        for (auto set : supported_instruction_sets()) {
          CAPTURE(std::string{name_of(set)});
          const reduction_kernels kernels{operation_kernels_for(type.value, op, set),
                                          datatype_kernels_for(type.value, set)};
          std::vector<std::byte> out(count * type.element_bytes);
          reduce_chain(kernels, starts, out.data(), count,
                       {.divisor = op == gpu_sim::AVG ? ranks : 0, .rescues = true});
          std::string wrong;
          for (uint64_t i = 0; i < count && wrong.empty(); ++i) {
            std::vector<const std::byte*> column;
            for (auto& x : raw)
              column.push_back(x.data() + i * type.element_bytes);
            wrong = wrong_average(type, op, column, first_ranks(ranks), out.data() + i * type.element_bytes);
            if (!wrong.empty())
              wrong = fmt::format("element {}: {}", i, wrong);
          }
          CHECK(wrong == "");
        }
      }
}

TEST_CASE("averages: four times 100 in int8 is 100, and integers truncate toward zero from the exact mean") {
  CHECK(average_of<int8_t>(proto::INT8, {100, 100, 100, 100}) == 100);
  CHECK(average_of<int8_t>(proto::INT8, {-128, -128, -128}) == -128);
  CHECK(average_of<int8_t>(proto::INT8, {127, -128}) == 0);
  CHECK(average_of<int8_t>(proto::INT8, {-128, -127}) == -127);
  CHECK(average_of<uint8_t>(proto::UINT8, {255, 255, 254}) == 254);
  CHECK(average_of<int32_t>(proto::INT32, {INT32_MAX, INT32_MAX, INT32_MAX - 1}) == INT32_MAX - 1);
  CHECK(average_of<int32_t>(proto::INT32, {INT32_MIN, INT32_MIN + 1}) == INT32_MIN + 1);
  CHECK(average_of<uint32_t>(proto::UINT32, {UINT32_MAX, UINT32_MAX}) == UINT32_MAX);
  CHECK(average_of<int64_t>(proto::INT64, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX - 1}) == INT64_MAX - 1);
  CHECK(average_of<int64_t>(proto::INT64, {INT64_MIN, INT64_MIN}) == INT64_MIN);
  CHECK(average_of<uint64_t>(proto::UINT64, {UINT64_MAX, UINT64_MAX, 0}) == UINT64_MAX / 3 * 2);
}

TEST_CASE("averages: of floats whose sum is finite they have the bits of the sum, divided") {
  std::vector<float> values{1.1f, 2.7f, -0.3f, 1e30f, 5.5e-40f, 3.3f};
  float sum = values[0];
  for (size_t i = 1; i < values.size(); ++i)
    sum += values[i];
  CHECK(average_of<float>(proto::FLOAT32, values) == sum / 6);
  constexpr auto least = std::numeric_limits<float>::denorm_min();
  CHECK(average_of<float>(proto::FLOAT32, {least, least, least}) == least);
  constexpr auto most = std::numeric_limits<float>::max();
  CHECK(average_of<float>(proto::FLOAT32, {most, most, most}) == most);
  CHECK(average_of<float>(proto::FLOAT32, {most, most, most, most, most, most, most}) == most);
  CHECK(average_of<double>(proto::FLOAT64, {-std::numeric_limits<double>::max(), -std::numeric_limits<double>::max()})
        == -std::numeric_limits<double>::max());
  constexpr auto infinity = std::numeric_limits<float>::infinity();
  CHECK(average_of<float>(proto::FLOAT32, {most, infinity, most}) == infinity);
  CHECK(std::isnan(average_of<float>(proto::FLOAT32, {infinity, most, -infinity})));
}

TEST_CASE("averages: operands that are scaled down have the bits of those that are not, wherever sums are normal") {
  for (auto type : {proto::FLOAT32, proto::FLOAT64, proto::BFLOAT16})
    for (uint32_t ranks : {2u, 3u, 5u, 8u, 13u}) {
      CAPTURE(name_of(type));
      CAPTURE(ranks);
      constexpr uint64_t count = 700;
      const auto& known = *find_datatype(type);
      const auto combine = *reducer::of(type, gpu_sim::AVG);
      const auto scale = combine.scale_before(ranks);
      CHECK(scale < 1);
      CHECK(scale * ranks <= 1);
      std::vector<std::byte> plain(count * known.element_bytes), scaled(plain.size());
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        std::vector<std::byte> input(plain.size());
        for (uint64_t i = 0; i < count; ++i)
          known.store(static_cast<double>(sample_whole_number(sample_hash(sample_seed(rank), i), 1'000'000)) / 7,
                      input.data() + i * known.element_bytes);
        if (rank == 0)
          plain = scaled = input;
        else {
          combine(plain.data(), input.data(), plain.data(), count);
          combine.add_scaled({scaled.data(), input.data(), rank == 1 ? scale : 1, scale}, scaled.data(), count);
        }
      }
      combine.finish(ranks, plain.data(), count);
      combine.finish_scaled(ranks, scaled.data(), count);
      CHECK(plain == scaled);
    }
}
