#pragma once

namespace holdfast::simulation {

/// One thing done wrong on purpose: the simulation must notice each of them.
enum class Bug {
    none,
    deadline_from_reply,   ///< A holder counts its lease from when the answer arrived.
    renew_unchecked,       ///< The store renews for any caller.
    unknown_extends,       ///< A renewal without an answer counts as one.
    no_seal,               ///< A new holder reads before the resource knows its token.
    no_fence,              ///< The resource accepts every token.
    release_resets_token,  ///< A released lock forgets its token; only the clock makes the next one higher.
};

}  // namespace holdfast::simulation
