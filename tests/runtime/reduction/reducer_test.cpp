#include "runtime/reduction/reducer.hpp"

#include "messages/errc.hpp"
#include "tests/support/references/element.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace ringmaster;
using test::built_in_ops;
using test::element;
using test::placed_values;
using test::random_values;

namespace {

/// Inputs of a chain, at odd addresses.
template <class T>
struct chain_inputs {
  std::vector<std::vector<T>> values;
  std::vector<placed_values<T>> placed;

  chain_inputs(std::mt19937_64& random, size_t inputs, size_t count) {
    for (size_t i = 0; i < inputs; ++i) {
      values.push_back(random_values<T>(random, count));
      placed.emplace_back(values.back(), i % 5);
    }
  }

  std::vector<const std::byte*> pointers() {
    std::vector<const std::byte*> result;
    for (auto& x : placed)
      result.push_back(x.data());
    return result;
  }

  std::vector<T> chained(gpu_sim::ReduceOp op, uint32_t divisor) const {
    std::vector<T> result;
    for (size_t i = 0; i < values[0].size(); ++i) {
      std::vector<T> column;
      for (const auto& x : values)
        column.push_back(x[i]);
      result.push_back(test::chained(op, column, divisor));
    }
    return result;
  }
};

template <class T>
reducer reducer_of(gpu_sim::ReduceOp op, std::string_view user_op = {}) {
  auto result = reducer::of(element<T>::type, op, user_op);
  REQUIRE(result.engaged());
  return *result;
}

/// a - b in the last 7 bits, so that the order shows, and 1 in the first.
void subtract_bytes(proto::DataType type, const std::byte* a, const std::byte* b, std::byte* out, uint64_t count) {
  for (uint64_t i = 0; i < count * size_of(type); ++i)
    out[i] = std::byte{static_cast<uint8_t>(128 | (static_cast<uint8_t>(a[i]) - static_cast<uint8_t>(b[i])))};
}

} // namespace

TEST_CASE_TEMPLATE("reducer: a chain of any length has the reference's bits in every instruction set", T,
                   RINGMASTER_ELEMENTS) {
  std::mt19937_64 random{sizeof(T)};
  for (size_t inputs : {2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 23})
    for (size_t count : {1, 65, 1031, 4099}) {
      chain_inputs<T> chain{random, inputs, count};
      for (auto op : built_in_ops) {
        const uint32_t divisor = op == gpu_sim::AVG ? 3 : 0;
        const auto right = chain.chained(op, divisor);
        for (auto set : supported_instruction_sets())
          for (bool streaming : {false, true}) {
            CAPTURE(inputs);
            CAPTURE(count);
            CAPTURE(std::string{name_of(op)});
            CAPTURE(std::string{name_of(set)});
            const reduction_kernels kernels{operation_kernels_for(element<T>::type, op, set),
                                            datatype_kernels_for(element<T>::type, set)};
            placed_values<T> out{std::vector<T>(count), inputs % 3 * 4};
            reduce_chain(
              kernels, chain.pointers(), out.data(), count,
              {.divisor = divisor, .streaming = streaming, .rescues = op == gpu_sim::AVG || op == gpu_sim::PREMUL_SUM});
            CHECK(out.first_difference(right) == count);
          }
      }
    }
}

TEST_CASE_TEMPLATE("reducer: a chain is the pairs one by one, but rounds small floats once", T, RINGMASTER_ELEMENTS) {
  std::mt19937_64 random{5};
  const size_t count = 3001;
  const uint32_t world_size = 6;
  chain_inputs<T> chain{random, world_size, count};
  for (auto op : built_in_ops) {
    CAPTURE(std::string{name_of(op)});
    const auto combine = reducer_of<T>(op);
    placed_values<T> pairs{chain.values[0], 1};
    for (size_t i = 1; i < world_size; ++i)
      combine(pairs.data(), chain.placed[i].data(), pairs.data(), count);
    combine.finish(world_size, pairs.data(), count);
    placed_values<T> once{std::vector<T>(count), 1};
    combine.many(chain.pointers(), once.data(), count, true, world_size);
    CHECK(once.first_difference(chain.chained(op, op == gpu_sim::AVG ? world_size : 0)) == count);
    std::vector<T> one_by_one(count);
    std::memcpy(one_by_one.data(), pairs.data(), count * sizeof(T));
    if (op == gpu_sim::AVG || op == gpu_sim::PREMUL_SUM)
      continue; // right where sums of pairs are too large
    if (!element<T>::rounds || op == gpu_sim::MIN || op == gpu_sim::MAX)
      CHECK(once.first_difference(one_by_one) == count);
    else
      CHECK(once.first_difference(one_by_one) != count);
  }
}

TEST_CASE("reducer: a chain's result may take the place of any input, and be written past the caches") {
  std::mt19937_64 random{3};
  const size_t count = 70'001;
  for (uint64_t touched_bytes : {uint64_t{0}, uint64_t{1} << 40})
    for (size_t place : {0, 1, 2, 3}) {
      chain_inputs<float> chain{random, 4, count};
      const auto right = chain.chained(gpu_sim::SUM, 0);
      reducer_of<float>(gpu_sim::SUM)
        .many(chain.pointers(), chain.placed[place].data(), count, false, 0, touched_bytes);
      CHECK(chain.placed[place].first_difference(right) == count);
      placed_values<float> apart{std::vector<float>(count), place};
      chain_inputs<float> again{random, 4, count};
      reducer_of<float>(gpu_sim::SUM).many(again.pointers(), apart.data(), count, false, 0, touched_bytes);
      CHECK(apart.first_difference(again.chained(gpu_sim::SUM, 0)) == count);
    }
}

TEST_CASE("reducer: a chain of one input copies it, and divides an average") {
  std::mt19937_64 random{3};
  const size_t count = 100;
  chain_inputs<int32_t> chain{random, 1, count};
  placed_values<int32_t> out{std::vector<int32_t>(count), 0};
  reducer_of<int32_t>(gpu_sim::PROD).many(chain.pointers(), out.data(), count, true, 4);
  CHECK(out.first_difference(chain.values[0]) == count);
  reducer_of<int32_t>(gpu_sim::AVG).many(chain.pointers(), out.data(), count, false, 4);
  CHECK(out.first_difference(chain.values[0]) == count);
  reducer_of<int32_t>(gpu_sim::AVG).many(chain.pointers(), out.data(), count, true, 4);
  CHECK(out.first_difference(chain.chained(gpu_sim::AVG, 4)) == count);
}

TEST_CASE("reducer: a user's operation is called in the order of the inputs") {
  REQUIRE(!register_reduce_op("subtract", {subtract_bytes, {proto::UINT8, proto::UINT32}}));
  const auto combine = reducer_of<uint32_t>(gpu_sim::USER, "subtract");
  std::mt19937_64 random{9};
  for (size_t count : {1, 1023, 1024, 1025, 5000})
    for (size_t place : {0, 1, 2, 3, 4}) {
      chain_inputs<uint32_t> chain{random, 4, count};
      placed_values<uint32_t> right{chain.values[0], 0};
      for (size_t i = 1; i < 4; ++i)
        combine(right.data(), chain.placed[i].data(), right.data(), count);
      combine.finish(4, right.data(), count);
      std::vector<uint32_t> expected(count);
      std::memcpy(expected.data(), right.data(), count * 4);
      placed_values<uint32_t> apart{std::vector<uint32_t>(count), 1};
      auto& out = place < 4 ? chain.placed[place] : apart;
      combine.many(chain.pointers(), out.data(), count, true, 4);
      CHECK(out.first_difference(expected) == count);
      CHECK((static_cast<uint8_t>(*out.data()) & 128) == 128);
    }
}

TEST_CASE("reducer: says what there is not") {
  const auto fault = [](proto::DataType type, gpu_sim::ReduceOp op, std::string_view user_op = {}) {
    auto result = reducer::of(type, op, user_op);
    REQUIRE(!result.engaged());
    CHECK(code_of(result.error()) == errc::invalid_argument);
    return render(result.error());
  };
  REQUIRE(!register_reduce_op("bytes only", {subtract_bytes, {proto::UINT8, proto::INT8}}));
  CHECK(fault(static_cast<proto::DataType>(99), gpu_sim::SUM) == "there is no datatype of number 99");
  CHECK(fault(proto::INT8, static_cast<gpu_sim::ReduceOp>(99)) == "there is no reduction of number 99");
  CHECK(fault(proto::FLOAT64, gpu_sim::USER, "bytes only")
        == "the reduction \"bytes only\" does not take float64, but uint8, int8");
  const auto unknown = fault(proto::UINT8, gpu_sim::USER, "xor");
  CHECK(unknown.find("no reduction \"xor\" is registered in this process; there are ") == 0);
  CHECK(unknown.find("bytes only") != std::string::npos);
}

TEST_CASE("reducer: a user's operation is refused with the reason") {
  const auto refusal = [](std::string name, user_reduce_op op) {
    auto error = register_reduce_op(std::move(name), std::move(op));
    CHECK(code_of(error) == errc::invalid_argument);
    return render(error);
  };
  const std::vector<proto::DataType> types{proto::INT32};
  CHECK(refusal("", {subtract_bytes, types}) == "the reduction \"\" cannot be registered: it needs a name");
  CHECK(refusal("sum", {subtract_bytes, types})
        == "the reduction \"sum\" cannot be registered: the name means a built-in one");
  CHECK(refusal("user", {subtract_bytes, types})
        == "the reduction \"user\" cannot be registered: the name means a built-in one");
  CHECK(refusal("x", {nullptr, types}) == "the reduction \"x\" cannot be registered: it has no function");
  CHECK(refusal("x", {subtract_bytes, {}}) == "the reduction \"x\" cannot be registered: it takes no datatype");
  CHECK(refusal("x", {subtract_bytes, {static_cast<proto::DataType>(99)}})
        == "the reduction \"x\" cannot be registered: it takes a datatype that does not exist");
  REQUIRE(!register_reduce_op("once", {subtract_bytes, types}));
  CHECK(refusal("once", {subtract_bytes, types})
        == "the reduction \"once\" cannot be registered: there is one of that name");
}

TEST_CASE("reducer: operations are registered and found by several threads at once") {
  std::atomic<int> found = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &found] {
      for (int i = 0; i < 50; ++i) {
        const auto name = "thread " + std::to_string(t) + " op " + std::to_string(i);
        if (!register_reduce_op(name, {subtract_bytes, {proto::INT8}}))
          found += reducer::of(proto::INT8, gpu_sim::USER, name).engaged();
      }
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(found == 200);
}
