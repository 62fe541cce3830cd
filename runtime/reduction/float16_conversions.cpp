#include "runtime/reduction/float16_conversions.hpp"

#include "runtime/reduction/small_floats.hpp"

#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ringmaster {

#ifdef __x86_64__

namespace {

#define RINGMASTER_AVX2 [[gnu::target("avx2,f16c")]]
#define RINGMASTER_AVX512 [[gnu::target("avx512f")]]

constexpr __mmask16 all_lanes = 0xffff; // without a mask, GCC 12 warns of what its own header leaves uninitialized

void decode_rest(const std::byte* in, std::byte* out, uint64_t done, uint64_t count) {
  for (; done < count; ++done) {
    uint16_t bits;
    std::memcpy(&bits, in + done * sizeof bits, sizeof bits);
    const float value = float16::decode(bits);
    std::memcpy(out + done * sizeof value, &value, sizeof value);
  }
}

void encode_rest(const std::byte* in, std::byte* out, uint64_t done, uint64_t count) {
  for (; done < count; ++done) {
    float value;
    std::memcpy(&value, in + done * sizeof value, sizeof value);
    const uint16_t bits = float16::encode(value);
    std::memcpy(out + done * sizeof bits, &bits, sizeof bits);
  }
}

RINGMASTER_AVX2 void decode_avx2(const std::byte* in, std::byte* out, uint64_t count) {
  uint64_t i = 0;
  for (; count - i >= 8; i += 8) {
    const auto bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 2 * i));
    _mm256_storeu_ps(reinterpret_cast<float*>(out + 4 * i), _mm256_cvtph_ps(bits));
  }
  decode_rest(in, out, i, count);
}

RINGMASTER_AVX512 void decode_avx512(const std::byte* in, std::byte* out, uint64_t count) {
  uint64_t i = 0;
  for (; count - i >= 16; i += 16) {
    const auto bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 2 * i));
    _mm512_storeu_ps(out + 4 * i, _mm512_maskz_cvtph_ps(all_lanes, bits));
  }
  decode_rest(in, out, i, count);
}

// A NaN keeps part of its fraction when it is converted: it is made the one NaN first.

RINGMASTER_AVX2 void encode_avx2(const std::byte* in, std::byte* out, uint64_t count) {
  const auto nan = _mm256_set1_ps(__builtin_nanf(""));
  uint64_t i = 0;
  for (; count - i >= 8; i += 8) {
    const auto values = _mm256_loadu_ps(reinterpret_cast<const float*>(in + 4 * i));
    const auto is_nan = _mm256_cmp_ps(values, values, _CMP_UNORD_Q);
    const auto bits = _mm256_cvtps_ph(_mm256_blendv_ps(values, nan, is_nan), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i), bits);
  }
  encode_rest(in, out, i, count);
}

RINGMASTER_AVX512 void encode_avx512(const std::byte* in, std::byte* out, uint64_t count) {
  const auto nan = _mm512_set1_ps(__builtin_nanf(""));
  uint64_t i = 0;
  for (; count - i >= 16; i += 16) {
    const auto values = _mm512_loadu_ps(in + 4 * i);
    const auto is_nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
    const auto bits = _mm512_maskz_cvtps_ph(all_lanes, _mm512_mask_mov_ps(values, is_nan, nan),
                                            _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i), bits);
  }
  encode_rest(in, out, i, count);
}

} // namespace

conversion_kernel float16_decoding(instruction_set set) {
  return set == instruction_set::avx512 ? decode_avx512 : set == instruction_set::avx2 ? decode_avx2 : nullptr;
}

conversion_kernel float16_encoding(instruction_set set) {
  return set == instruction_set::avx512 ? encode_avx512 : set == instruction_set::avx2 ? encode_avx2 : nullptr;
}

#else

conversion_kernel float16_decoding(instruction_set) {
  return nullptr;
}

conversion_kernel float16_encoding(instruction_set) {
  return nullptr;
}

#endif

} // namespace ringmaster
