// An algorithm, datatypes and a reduction that the library does not have, registered as a program does that links
// ringmaster::ringmaster alone: planned, proved, simulated, and run on a cluster of this process.
#include <ringmaster/algorithm.hpp>
#include <ringmaster/client.hpp>
#include <ringmaster/datatype.hpp>
#include <ringmaster/reduce_op.hpp>
#include <ringmaster/simulate.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

namespace {

/// A complex number. It has no order, so no minimum and no maximum.
struct complex64 {
  complex64() = default;
  complex64(float real, float imaginary) : re(real), im(imaginary) {}
  explicit complex64(double real) : re(static_cast<float>(real)) {}

  friend complex64 operator+(complex64 a, complex64 b) { return {a.re + b.re, a.im + b.im}; }
  friend complex64 operator*(complex64 a, complex64 b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend complex64 operator/(complex64 a, complex64 b) {
    const auto square = b.re * b.re + b.im * b.im;
    const auto product = a * complex64{b.re, -b.im};
    return {product.re / square, product.im / square};
  }
  friend bool operator==(complex64, complex64) = default;

  float re = 0, im = 0;
};

} // namespace

template <>
constexpr ringmaster::datatype ringmaster::datatype_of<int16_t>() {
  return ringmaster::datatype{100};
}
template <>
constexpr ringmaster::datatype ringmaster::datatype_of<complex64>() {
  return ringmaster::datatype{101};
}

using namespace ringmaster;

namespace {

/// All-reduce: each rank sends its input to all others, and adds the inputs in the order of ranks, starting with its
/// own predecessor and around.
schedule plan_all_around(const plan_request& request) {
  const auto n = request.world_size, me = request.rank;
  const block_range input{buffer::input, 0, request.count}, output{buffer::output, 0, request.count};
  schedule_builder steps{request};
  for (uint32_t i = 1; i < n; ++i) {
    steps.send(i - 1, (me + i) % n, input);
    steps.recv_reduce(i - 1, (me + n - i) % n, i == 1 ? input : output, output, i + 1 == n);
  }
  return steps.take(n - 1);
}

algorithm_cost cost_of_all_around(const plan_request& request) {
  const uint64_t messages = request.world_size - 1;
  return {messages, messages * request.count, messages, messages, messages * request.count};
}

const algorithm_definition all_around{.name = "all_around",
                                      .kind = collective_kind::all_reduce,
                                      .formula = "N-1 rounds of the whole buffer",
                                      .plan = plan_all_around,
                                      .cost = cost_of_all_around};

/// Once, before other calls.
const auto algorithm_registered = register_algorithm(all_around),
           int16_registered = register_datatype(define_datatype<int16_t>("int16")),
           complex_registered = register_datatype(define_datatype<complex64>("complex64"));

constexpr uint32_t ranks = 3;
constexpr uint64_t count = 1000;
constexpr std::chrono::seconds limit{20};

/// An all-reduce of element(rank, index) on a cluster of this process; what each rank has then.
template <class T, class Element>
expected<std::vector<std::vector<T>>> reduced(Element element, const reduction& how, const std::string& algorithm,
                                              bool deterministic = false) {
  auto home = cluster::open({"--device.count=3"}).value();
  home.devices(ranks, limit).value();
  client host{home};
  auto communicator = host.make_communicator(ranks, {.deterministic = deterministic}).value();
  auto buffers = communicator.allocate<T>(count).value();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<T> input;
    for (uint64_t i = 0; i < count; ++i)
      input.push_back(element(rank, i));
    buffers[rank].write(input).value();
  }
  if (auto called = communicator.all_reduce<T>(buffers, count, how, algorithm); !called)
    return called.error();
  communicator.wait(limit).value();
  std::vector<std::vector<T>> result;
  for (auto& each : buffers)
    result.push_back(each.template read<T>().value());
  return result;
}

/// Every rank has right(index).
template <class T, class Right>
void check_result(const expected<std::vector<std::vector<T>>>& found, Right right) {
  for (auto& rank : found.value()) {
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < count; ++i)
      wrong += rank[i] != right(i);
    CHECK(wrong == 0);
  }
}

int16_t whole(uint32_t rank, uint64_t index) {
  return static_cast<int16_t>(static_cast<int>(index) - 300 + 17 * static_cast<int>(rank));
}

int16_t close_to_the_largest(uint32_t rank, uint64_t index) {
  return static_cast<int16_t>(32'000 + static_cast<int>(index % 700) - 500 * static_cast<int>(rank));
}

complex64 imaginary(uint32_t rank, uint64_t index) {
  return {static_cast<float>(index % 5), static_cast<float>(rank) - 1};
}

template <class T>
int sum_of(T (*element)(uint32_t rank, uint64_t index), uint64_t index) {
  int sum = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    sum += element(rank, index);
  return sum;
}

} // namespace

TEST_CASE("extension: an algorithm from outside is planned, proved and simulated") {
  algorithm_registered.value();
  CHECK(std::ranges::count(algorithm_names(collective_kind::all_reduce), "all_around") == 1);
  for (uint32_t world_size : {1, 2, 3, 8}) {
    CAPTURE(world_size);
    const plan_request request{.world_size = world_size, .count = count};
    const auto schedules = plan_all(collective_kind::all_reduce, "all_around", request).value();
    const auto proof = prove(collective_kind::all_reduce, request, schedules);
    CHECK_MESSAGE(proof.holds, proof.fault);
    const network_model slow{.latency_s = 1e-6, .bandwidth = 1e9}; // 8 us for a buffer
    const auto found = simulate_collective(collective_kind::all_reduce, "all_around", request, sizeof(double), slow);
    CHECK(found.value().seconds == doctest::Approx((world_size - 1) * 9e-6)); // as its cost says
  }
}

TEST_CASE("extension: an algorithm from outside runs on a cluster, on a datatype from outside") {
  algorithm_registered.value();
  int16_registered.value();
  check_result(reduced<int16_t>(whole, reduce_op::sum, "all_around"), [](uint64_t i) { return sum_of(whole, i); });
}

TEST_CASE("extension: a deterministic communicator has an algorithm from outside add in rank order") {
  algorithm_registered.value();
  const auto element = [](uint32_t rank, uint64_t i) { // 1e8 absorbs a small number that is added to it alone
    return rank == 1 ? 1e8F : static_cast<float>(i % 7) + 0.25F;
  };
  check_result(reduced<float>(element, reduce_op::sum, "all_around", true),
               [&](uint64_t i) { return element(0, i) + element(1, i) + element(2, i); });
}

TEST_CASE("extension: a datatype from outside has a name, a size and every reduction") {
  int16_registered.value();
  CHECK(name_of(datatype_of<int16_t>()) == "int16");
  CHECK(bytes_of(datatype_of<int16_t>()) == 2);
  for (std::string algorithm : {"auto", "ring"}) { // by shared memory, and step by step
    CAPTURE(algorithm);
    check_result(reduced<int16_t>(whole, reduce_op::avg, algorithm),
                 [](uint64_t i) { return sum_of(whole, i) / static_cast<int>(ranks); });
    check_result(reduced<int16_t>(close_to_the_largest, reduce_op::avg, algorithm), // their sum is no int16
                 [](uint64_t i) { return sum_of(close_to_the_largest, i) / static_cast<int>(ranks); });
    check_result(reduced<int16_t>(whole, reduction::premul_sum(-2), algorithm),
                 [](uint64_t i) { return -2 * sum_of(whole, i); });
    check_result(reduced<int16_t>(whole, reduce_op::min, algorithm), [](uint64_t i) { return whole(0, i); });
    check_result(reduced<int16_t>(whole, reduce_op::max, algorithm), [](uint64_t i) { return whole(ranks - 1, i); });
    check_result(reduced<int16_t>(whole, reduce_op::prod, algorithm), [](uint64_t i) { // modulo 2^16
      return static_cast<int16_t>(static_cast<int64_t>(whole(0, i)) * whole(1, i) * whole(2, i));
    });
  }
  const auto refused = reduced<int16_t>(whole, reduction::premul_sum(40'000), "auto");
  CHECK(refused.error().code == errc::invalid_argument);
  CHECK(refused.error().message.find("of int16 it must be whole and from -32768 to 32767") != std::string::npos);
}

TEST_CASE("extension: a datatype of a class has the reductions whose operators the class has") {
  complex_registered.value();
  for (std::string algorithm : {"auto", "ring"}) {
    CAPTURE(algorithm);
    check_result(reduced<complex64>(imaginary, reduce_op::sum, algorithm),
                 [](uint64_t i) { return imaginary(0, i) + imaginary(1, i) + imaginary(2, i); });
    check_result(reduced<complex64>(imaginary, reduce_op::prod, algorithm),
                 [](uint64_t i) { return imaginary(0, i) * imaginary(1, i) * imaginary(2, i); });
    check_result(reduced<complex64>(imaginary, reduce_op::avg, algorithm), [](uint64_t i) {
      return complex64{static_cast<float>(i % 5), 0};
    });
    check_result(reduced<complex64>(imaginary, reduction::premul_sum(0.5), algorithm), [](uint64_t i) {
      return complex64{1.5F * static_cast<float>(i % 5), 0};
    });
  }
  const auto refused = reduced<complex64>(imaginary, reduce_op::max, "auto");
  CHECK(refused.error().code == errc::invalid_argument);
  CHECK(refused.error().message.find("the datatype complex64 was registered without max") != std::string::npos);
}

TEST_CASE("extension: a reduction from outside is applied to datatypes from outside") {
  int16_registered.value();
  const auto larger = [](int16_t a, int16_t b) { return std::abs(a) < std::abs(b) ? b : a; };
  register_reduce_op<int16_t>("larger magnitude", larger).value();
  for (std::string algorithm : {"auto", "ring", "all_around"}) {
    CAPTURE(algorithm);
    check_result(reduced<int16_t>(whole, reduction::user("larger magnitude"), algorithm, true),
                 [&](uint64_t i) { return larger(larger(whole(0, i), whole(1, i)), whole(2, i)); });
  }
  const auto again = register_reduce_op<int16_t>("larger magnitude", larger);
  CHECK(again.error().code == errc::invalid_argument);
}

TEST_CASE("extension: what is registered already, or incomplete, is refused") {
  algorithm_registered.value();
  int16_registered.value();
  const auto refusal = [](auto change) {
    auto definition = define_datatype<int16_t>("other");
    definition.number = datatype{102};
    change(definition);
    const auto found = register_datatype(definition);
    REQUIRE(!found);
    CHECK(found.error().code == errc::invalid_argument);
    return found.error().message;
  };
  const auto says = [](const std::string& message, const char* text) {
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  says(refusal([](auto& x) { x.number = datatype{100}; }), "there is int16, of number 100");
  says(refusal([](auto& x) { x.name = "float32"; }), "there is float32, of number 1");
  says(refusal([](auto& x) { x.name = ""; }), "it has no name");
  says(refusal([](auto& x) { x.number = datatype{256}; }), "its number is 256, not 0 to 255");
  says(refusal([](auto& x) { x.element_bytes = 16; }), "an element has 1, 2, 4 or 8 bytes, not 16");
  says(refusal([](auto& x) { x.element_bytes = 3; }), "an element has 1, 2, 4 or 8 bytes, not 3");
  says(refusal([](auto& x) { x.sum = nullptr; }), "also need a loop of sums");
  says(refusal([](auto& x) { x.divide = nullptr; }), "also need a loop of divisions");
  says(refusal([](auto& x) { x.store = nullptr; }), "also need a function that stores a number");
  says(register_algorithm(all_around).error().message, "there is one of that name");
}
