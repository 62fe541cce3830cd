// A datatype and a reduction of your own: complex numbers of 8 bytes with the type's operators, and the number that is
// furthest from 0. Every process of a cluster registers both before it makes calls.
//
//   build/release/examples/my_datatype
//
// prints
//
//   complex64 sum: (10, -2)
//   complex64 prod: (40, 0)
//   complex64 furthest: (4, -2)
//   complex64 max: the datatype complex64 was registered without max
#include <ringmaster/client.hpp>
#include <ringmaster/datatype.hpp>
#include <ringmaster/reduce_op.hpp>

#include <cstdio>

struct complex64 {
  friend complex64 operator+(complex64 a, complex64 b) { return {a.re + b.re, a.im + b.im}; }
  friend complex64 operator*(complex64 a, complex64 b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  float square() const { return re * re + im * im; }

  float re, im;
};

template <>
constexpr ringmaster::datatype ringmaster::datatype_of<complex64>() {
  return datatype{100}; // the same in every process
}

using namespace ringmaster;

static expected<complex64> reduce(communicator& ranks, std::vector<device_memory>& buffers, const reduction& how) {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const auto x = static_cast<float>(rank);
    buffers[rank].write(std::vector{complex64{1 + x, 1 - x}}).value();
  }
  if (auto called = ranks.all_reduce<complex64>(buffers, 1, how); !called)
    return called.error();
  ranks.wait(std::chrono::seconds{30}).value();
  return buffers[0].read<complex64>().value()[0];
}

int main(int argc, char** argv) {
  register_datatype(define_datatype<complex64>("complex64")).value();
  const auto furthest = [](complex64 a, complex64 b) { return a.square() < b.square() ? b : a; };
  register_reduce_op<complex64>("furthest", furthest).value();
  return run_main(argc, argv, [](cluster& home) {
    auto ranks = client{home}.make_communicator(4).value();
    auto buffers = ranks.allocate<complex64>(1).value();
    const auto sum = reduce(ranks, buffers, reduce_op::sum).value(),
               prod = reduce(ranks, buffers, reduce_op::prod).value();
    const auto last = reduce(ranks, buffers, reduction::user("furthest")).value();
    std::printf("complex64 sum: (%g, %g)\ncomplex64 prod: (%g, %g)\ncomplex64 furthest: (%g, %g)\ncomplex64 max: %s\n",
                sum.re, sum.im, prod.re, prod.im, last.re, last.im,
                reduce(ranks, buffers, reduce_op::max).error().message.c_str());
  });
}
