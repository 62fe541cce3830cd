#include "training/data/digit_strokes.hpp"

#include <array>

namespace ringmaster::training {

namespace {

/// Writes a stroke, in lines and in parts of ellipses.
class pen {
public:
  pen& to(double x, double y) {
    line_.push_back({x, y});
    return *this;
  }

  /// Around (x, y), in steps of 1/24 of a turn from `first` to `last`; 0 lies to the right, 6 below. The cosines are written here
  /// since a library's may differ in their last bit.
  pen& around(double x, double y, double width, double height, uint32_t first, uint32_t last) {
    constexpr std::array<double, 7> quarter{
      1, 0.96592582628906831, 0.86602540378443865, 0.70710678118654752, 0.5, 0.25881904510252076, 0};
    auto cosine = [&](uint32_t turn) {
      turn %= 24;
      turn = turn > 12 ? 24 - turn : turn;
      return turn > 6 ? -quarter[12 - turn] : quarter[turn];
    };
    for (auto turn = first; turn <= last; ++turn)
      to(x + width * cosine(turn), y + height * cosine(turn + 18));
    return *this;
  }

  operator stroke() const { return line_; }

private:
  stroke line_;
};

const std::array<std::vector<stroke>, 10>& all_strokes() {
  static const std::array<std::vector<stroke>, 10> result{{
    {pen{}.around(.5, .5, .23, .37, 0, 24)},
    {pen{}.to(.38, .28).to(.54, .12).to(.54, .88)},
    {pen{}.around(.5, .33, .22, .21, 12, 26).to(.26, .87).to(.76, .87)},
    {pen{}.around(.47, .31, .22, .19, 13, 29).around(.47, .69, .25, .2, 19, 35)},
    {pen{}.to(.6, .88).to(.6, .12).to(.24, .63).to(.8, .63)},
    {pen{}.to(.72, .13).to(.34, .13).to(.31, .46).around(.48, .65, .24, .23, 16, 33)},
    {pen{}.to(.64, .12).to(.42, .32).to(.3, .56).around(.5, .67, .21, .21, 12, 36)},
    {pen{}.to(.24, .14).to(.76, .14).to(.44, .88)},
    {pen{}.around(.5, .31, .19, .19, 0, 24), pen{}.around(.5, .69, .23, .2, 0, 24)},
    {pen{}.around(.5, .34, .21, .22, 0, 24).to(.67, .66).to(.52, .88)},
  }};
  return result;
}

} // namespace

std::span<const stroke> strokes_of(uint32_t digit) {
  return all_strokes().at(digit);
}

} // namespace ringmaster::training
