#include "training/layouts/tensor_layout.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"
#include "training/layouts/layout_picture.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::training;
using ringmaster::test::contains;
using ringmaster::test::occurrences;

namespace {

const cut_layer hidden{"hidden", 768, 256, layer_cut::columns}, out{"out", 256, 10, layer_cut::rows};

tensor_layout eight_ranks(uint64_t samples = 0) {
  auto made = tensor_layout::of(8, 4, {hidden, out}, samples);
  REQUIRE(made);
  return *made;
}

template <class T>
void check_layout_refused(const caf::expected<T>& made, std::string_view sentence) {
  REQUIRE(!made);
  CHECK(code_of(made.error()) == errc::invalid_argument);
  CHECK_MESSAGE(contains(render(made.error()), sentence), render(made.error()));
}

} // namespace

TEST_CASE("layout: a rank is its data index times the tensor side, and its tensor index") {
  const auto x = eight_ranks();
  const auto& sides = x.sides();
  CHECK(sides.data == 2);
  CHECK(sides.tensor_index(6) == 2);
  CHECK(sides.data_index(6) == 1);
  CHECK(sides.tensor_group(6) == group{4, 4, 1});
  CHECK(sides.data_group(6) == group{2, 2, 4});
}

TEST_CASE("layout: a layer cut by columns keeps its rows, one cut by rows its columns") {
  const auto x = eight_ranks();
  const auto columns = x.part_of(hidden, 6), rows = x.part_of(out, 7);
  CHECK(columns.rows == range{0, 768});
  CHECK(columns.columns == range{128, 192});
  CHECK(rows.rows == range{192, 256});
  CHECK(rows.columns == range{0, 10});
}

TEST_CASE("layout: the data is cut exactly, whole slices first") {
  const auto x = eight_ranks(1001);
  for (uint32_t rank = 0; rank < 8; ++rank)
    CHECK(x.samples_of(rank) == (rank < 4 ? range{0, 501} : range{501, 1001}));
}

TEST_CASE("layout: what does not divide is refused with what is wrong") {
  check_layout_refused(tensor_layout::of(8, 3, {}),
                       "8 ranks cannot share layers 3 by 3: there must be a multiple of 3");
  check_layout_refused(tensor_layout::of(0, 1, {}), "0 ranks cannot share layers");
  check_layout_refused(tensor_layout::of(8, 4, {{"wide", 768, 250, layer_cut::columns}}),
                       "layer wide, 768x250, cannot be cut by columns over 4 ranks: 250 is no multiple of 4");
  check_layout_refused(tensor_layout::of(8, 4, {{"high", 10, 256, layer_cut::rows}}),
                       "layer high, 10x256, cannot be cut by rows over 4 ranks: 10 is no multiple of 4");
  check_layout_refused(tensor_layout::of(8, 4, {hidden, out, hidden}), "there are two layers hidden");
  check_layout_refused(tensor_layout::of(8, 4, {}, 1), "1 sample cannot be cut into 2 slices");
}

TEST_CASE("layout: a layer is written as name, sides and what is cut") {
  auto read = parse_layer("block:3:768x256:columns");
  REQUIRE(read);
  CHECK(read->name == "block:3");
  CHECK(read->rows == 768);
  CHECK(read->columns == 256);
  CHECK(read->cut == layer_cut::columns);
  CHECK(parse_layer("a:1x2:rows")->cut == layer_cut::rows);
  for (auto* wrong : {"", "a", ":", "::", "a:1x2", "1x2:rows", ":1x2:rows", "a:12:rows"})
    check_layout_refused(parse_layer(wrong), "is no layer: write NAME:INxOUT:columns");
  check_layout_refused(parse_layer("a:0x2:rows"), "layer a:0x2:rows: \"0\"");
  check_layout_refused(parse_layer("a:1x-2:rows"), "\"-2\"");
  check_layout_refused(parse_layer("a:1x2:diagonal"), "must be columns or rows, and is \"diagonal\"");
}

TEST_CASE("layout: the picture has a box for each rank, with its part of each layer and its slice") {
  auto picture = picture_of(eight_ranks(1000));
  REQUIRE(picture);
  for (uint32_t rank = 0; rank < 8; ++rank)
    CHECK(contains(*picture, ">rank " + std::to_string(rank) + "<"));
  CHECK(occurrences(*picture, ">768x64<") == 8);
  CHECK(occurrences(*picture, ">64x10<") == 8);
  CHECK(contains(*picture, ">samples 500-999<"));
  auto without = picture_of(eight_ranks());
  REQUIRE(without);
  CHECK(contains(*without, ">slice 1 of 2<"));
}

TEST_CASE("layout: what is too much for a picture is refused") {
  auto wide = tensor_layout::of(17, 17, {});
  REQUIRE(wide);
  check_layout_refused(picture_of(*wide), "at most 16 x 16 ranks and 8 layers, and there are 17 x 1 and 0");
}
