#include "values/sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
// The header of glibc is not for Clang's C++.
#if __has_include(<sys/platform/x86.h>) && !defined(__clang__)
#include <sys/platform/x86.h>
#else
#include <cpuid.h>
#endif
#endif

namespace holdfast {
namespace {

constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = Sha256::State;

std::uint32_t load_big_endian(const std::uint8_t* bytes) {
    return (std::uint32_t{bytes[0]} << 24) | (std::uint32_t{bytes[1]} << 16) | (std::uint32_t{bytes[2]} << 8) |
           std::uint32_t{bytes[3]};
}

void compress_portably(State& state, const std::uint8_t* block) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 16; ++i) w[i] = load_big_endian(block + 4 * i);
    for (std::size_t i = 16; i < 64; ++i) {
        const auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
        const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    const State round{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += round[i];
}

#if defined(__x86_64__)
/// Whether the processor has instructions for SHA-256, which are five times as fast.
bool has_instructions() {
#ifdef _SYS_PLATFORM_X86_H
    // The C library knows already. Asking the processor is an exit to the hypervisor in a virtual machine: four of them
    // take longer than the hashes of a short command.
    return x86_cpu_active(x86_cpu_SHA) && x86_cpu_active(x86_cpu_SSE4_1) && x86_cpu_active(x86_cpu_SSSE3);
#else
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    constexpr unsigned ssse3_and_sse41 = (1U << 9) | (1U << 19);
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & ssse3_and_sse41) != ssse3_and_sse41) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1U << 29)) != 0;
#endif
}

/// Four rounds at a time. The instructions want the state as (A B E F) and (C D G H), and the words of a block with
/// their bytes turned around.
__attribute__((target("sha,sse4.1,ssse3"))) void compress_by_instructions(State& state, const std::uint8_t* block) {
    const auto load = [](const void* from) __attribute__((target("sha,sse4.1,ssse3"))) {
        return _mm_loadu_si128(static_cast<const __m128i*>(from));
    };
    const __m128i turn = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i low = _mm_shuffle_epi32(load(state.data()), 0xb1);       // B A D C
    const __m128i high = _mm_shuffle_epi32(load(state.data() + 4), 0x1b);  // H G F E
    __m128i abef = _mm_alignr_epi8(low, high, 8);
    __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i words[4];  // std::array would drop what makes the type a vector.
    for (std::size_t i = 0; i < 4; ++i) words[i] = _mm_shuffle_epi8(load(block + 16 * i), turn);
    for (std::size_t i = 0; i < 16; ++i) {
        const __m128i now = words[i % 4];
        const __m128i sum = _mm_add_epi32(now, load(round_constants.data() + 4 * i));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        // The words that are needed four steps from here.
        const __m128i before = words[(i + 3) % 4];
        const __m128i next = _mm_add_epi32(_mm_sha256msg1_epu32(now, words[(i + 1) % 4]),
                                           _mm_alignr_epi8(before, words[(i + 2) % 4], 4));
        words[i % 4] = _mm_sha256msg2_epu32(next, before);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

void compress(State& state, const std::uint8_t* block) {
    static const bool by_instructions = has_instructions();
    if (by_instructions) return compress_by_instructions(state, block);
    compress_portably(state, block);
}
#else
void compress(State& state, const std::uint8_t* block) { compress_portably(state, block); }
#endif

}  // namespace

void Sha256::update(std::span<const std::uint8_t> bytes) {
    // memcpy may not be given the null pointer of an empty span.
    if (bytes.empty()) return;
    const std::size_t waiting = size_ % block_size;
    size_ += bytes.size();
    if (waiting > 0) {
        const std::size_t some = std::min(bytes.size(), block_size - waiting);
        std::memcpy(rest_.data() + waiting, bytes.data(), some);
        if (waiting + some < block_size) return;
        compress(state_, rest_.data());
        bytes = bytes.subspan(some);
    }
    while (bytes.size() >= block_size) {
        compress(state_, bytes.data());
        bytes = bytes.subspan(block_size);
    }
    if (!bytes.empty()) std::memcpy(rest_.data(), bytes.data(), bytes.size());
}

Digest Sha256::finish() {
    const std::size_t waiting = size_ % block_size;
    const std::uint64_t bits = size_ * 8;

    // The rest, a one bit, zeros, and the length: one block, or two when the length does not fit.
    std::array<std::uint8_t, 2 * block_size> tail{};
    std::memcpy(tail.data(), rest_.data(), waiting);
    tail[waiting] = 0x80;
    const std::size_t tail_size = waiting + 1 + 8 <= block_size ? block_size : 2 * block_size;
    for (std::size_t i = 0; i < 8; ++i) tail[tail_size - 1 - i] = static_cast<std::uint8_t>(bits >> (8 * i));
    for (std::size_t at = 0; at < tail_size; at += block_size) compress(state_, tail.data() + at);

    Digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i)
        digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
}

Digest sha256(std::span<const std::uint8_t> bytes) {
    Sha256 hash;
    hash.update(bytes);
    return hash.finish();
}

}  // namespace holdfast
