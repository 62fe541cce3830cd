#pragma once

#include "messages/protobuf_inspect.hpp"

#include <caf/deserializer.hpp>
#include <caf/detail/message_data.hpp>
#include <caf/detail/stringification_inspector.hpp>
#include <caf/detail/tuple_vals.hpp>
#include <caf/detail/type_erased_value_impl.hpp>
#include <caf/serializer.hpp>

#include <string>
#include <tuple>

// What CAF 0.17 keeps a message's values in, written for protobuf messages. CAF's own templates make forty functions
// for each list of types in each file that sends it, which was a third of all code that was compiled; here they use
// the base class. What is stored, loaded and printed is the same. type_ids.hpp includes this, so it is known before any
// message is made.

namespace ringmaster {

template <class... Ts>
concept some_protobuf = (std::is_base_of_v<google::protobuf::Message, Ts> || ...);

caf::error save_value(caf::serializer& sink, const google::protobuf::Message& x);
caf::error load_value(caf::deserializer& source, google::protobuf::Message& x);
std::string value_text(const google::protobuf::Message& x);

template <class T>
caf::error save_value(caf::serializer& sink, const T& x) {
  if constexpr (some_protobuf<T>)
    return save_value(sink, static_cast<const google::protobuf::Message&>(x));
  else
    return sink(const_cast<T&>(x));
}

template <class T>
caf::error load_value(caf::deserializer& source, T& x) {
  if constexpr (some_protobuf<T>)
    return load_value(source, static_cast<google::protobuf::Message&>(x));
  else
    return source(x);
}

template <class T>
std::string value_text(const T& x) {
  if constexpr (some_protobuf<T>) {
    return value_text(static_cast<const google::protobuf::Message&>(x));
  } else {
    std::string result;
    caf::detail::stringification_inspector f{result};
    f(const_cast<T&>(x));
    return result;
  }
}

} // namespace ringmaster

namespace caf::detail {

template <class Base, class... Ts>
requires ringmaster::some_protobuf<Ts...>
class tuple_vals_impl<Base, Ts...> : public Base {
public:
  using super = message_data;
  using data_type = std::tuple<Ts...>;

  tuple_vals_impl(const tuple_vals_impl&) = default;
  template <class... Us>
  tuple_vals_impl(Us&&... xs) : data_(std::forward<Us>(xs)...) {}

  data_type& data() { return data_; }
  const data_type& data() const { return data_; }

  using Base::copy;
  size_t size() const noexcept override { return sizeof...(Ts); }
  uint32_t type_token() const noexcept override { return make_type_token<Ts...>(); }
  void* get_mutable(size_t pos) override { return address(pos); }
  const void* get(size_t pos) const noexcept override { return address(pos); }

  rtti_pair type(size_t pos) const noexcept override {
    const rtti_pair types[] = {make_rtti_pair<Ts>()...};
    return types[pos];
  }
  std::string stringify(size_t pos) const override {
    return at<std::string>(pos, [](auto& x) { return ringmaster::value_text(x); });
  }
  type_erased_value_ptr copy(size_t pos) const override {
    return at<type_erased_value_ptr>(pos, type_erased_value_factory{});
  }
  error load(size_t pos, deserializer& source) override {
    return at<error>(pos, [&](auto& x) {
      return ringmaster::load_value(source, const_cast<std::decay_t<decltype(x)>&>(x));
    });
  }
  error save(size_t pos, serializer& sink) const override {
    return at<error>(pos, [&](auto& x) { return ringmaster::save_value(sink, x); });
  }

private:
  void* address(size_t pos) const noexcept {
    return at<void*>(pos, [](auto& x) -> void* { return const_cast<std::decay_t<decltype(x)>*>(std::addressof(x)); });
  }

  template <class Result, class F, size_t I = 0>
  Result at(size_t pos, F f) const {
    if constexpr (I + 1 < sizeof...(Ts))
      if (pos != I)
        return at<Result, F, I + 1>(pos, f);
    return f(std::get<I>(data_));
  }

  data_type data_;
};

template <ringmaster::some_protobuf T>
class type_erased_value_impl<T> : public type_erased_value {
public:
  template <class... Ts>
  explicit type_erased_value_impl(Ts&&... xs) : x_(std::forward<Ts>(xs)...) {}

  void* get_mutable() override { return &x_; }
  const void* get() const override { return &x_; }
  error load(deserializer& source) override { return ringmaster::load_value(source, x_); }
  error save(serializer& sink) const override { return ringmaster::save_value(sink, x_); }
  rtti_pair type() const override { return make_rtti_pair<T>(); }
  std::string stringify() const override { return ringmaster::value_text(x_); }
  type_erased_value_ptr copy() const override { return make_type_erased_value<T>(x_); }

private:
  T x_;
};

} // namespace caf::detail
