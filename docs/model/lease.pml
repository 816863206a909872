/* Who believes to hold the lock? One lock, its store and three clients that acquire, renew, release and die; requests
 * and answers get lost, a release arrives late, an operator breaks the lock once. See README.md.
 *
 * Time is counted down: `left` is what remains of the lease by the store, `mine[c]` by client c. A tick lowers all of
 * them. It may come at any moment or not for long, so no real duration is built in.
 *
 * Wrong on purpose: RENEW_UNCHECKED, RELEASE_UNCHECKED, STEAL_KEEPS_TOKEN, DEADLINE_FROM_REPLY.
 */
#define CLIENTS 3
#define ATTEMPTS 1
#define GRANTS 4  /* Where the search ends: histories with more grants and breaks are not looked at. */
#define TTL 2

/* The store. */
byte holder;  /* The lock_id of the lease. 0: free. */
byte left;    /* 0 beside a holder: expired. */
byte token;
byte last_grant;
byte broken;  /* The lock_id that an operator took the lock from: the one client that may be wrong about it. */
byte late_release;  /* The lock_id of a release that is still on its way. */

/* The clients. Each attempt has a lock_id of its own, chosen before the request leaves. */
byte id[CLIENTS];
byte mine[CLIENTS];     /* Above 0: this client believes that it holds the lock. */
byte pending[CLIENTS];  /* What `mine` will be when the answer comes: counted from before the request left. */

/* Repeating an Acquire with the same lock_id renews the lease. */
inline acquire(lock_id, ok) {
    if
    :: holder == lock_id -> ok = (left > 0)
    :: holder != lock_id && (holder == 0 || left == 0) && token < GRANTS ->
#ifdef STEAL_KEEPS_TOKEN
        token = (holder == 0 -> token + 1 : token);
#else
        token++;
#endif
        assert(token > last_grant);
        last_grant = token; holder = lock_id; ok = true
    :: else -> ok = false
    fi;
    left = (ok -> TTL : left)
}

inline renew(lock_id, ok) {
#ifdef RENEW_UNCHECKED
    ok = (holder != 0 && left > 0);
#else
    ok = (holder == lock_id && left > 0);
#endif
    left = (ok -> TTL : left)
}

inline release(lock_id) {
    if
#ifdef RELEASE_UNCHECKED
    :: true -> holder = 0; left = 0
#else
    :: holder == lock_id -> holder = 0; left = 0
    :: else
#endif
    fi
}

hidden byte believers;
#define SURE(c) (mine[c] > 0 && id[c] != broken)

/* The client learns that the lock is its own. Nobody else may believe the same. */
inline believe(c) {
#ifdef DEADLINE_FROM_REPLY
    mine[c] = TTL;
#else
    mine[c] = pending[c];
#endif
    pending[c] = 0;
    believers = SURE(0) + SURE(1) + SURE(2);
    assert(believers <= 1)
}

proctype Client(byte c) {
    byte attempt = 0;
    bool ok = false;

next_attempt:
    atomic {
        mine[c] = 0; pending[c] = 0; ok = false;
        if
        :: attempt < ATTEMPTS -> attempt++; id[c] = c * ATTEMPTS + attempt
        :: attempt == ATTEMPTS -> goto done
        fi
    };
ask:
    pending[c] = TTL;
    if
    :: d_step { acquire(id[c], ok) }
    :: skip  /* The request was lost. */
    fi;
    if
    :: ok -> d_step { believe(c); ok = false }
    :: goto next_attempt  /* Died, or lost patience. */
    :: ok = false; goto ask  /* Refused, or the answer was lost: again, with the same lock_id. */
    fi;

    do
    :: mine[c] > 0 ->
        pending[c] = TTL;
        if
        :: d_step { renew(id[c], ok) };
            if
            :: ok -> d_step { believe(c); ok = false }
            :: !ok -> goto next_attempt
            :: d_step { pending[c] = 0; ok = false }  /* The answer was lost, and extends nothing. */
            fi
        :: pending[c] = 0  /* The request was lost. */
        fi
    :: break
    :: goto next_attempt  /* Died. */
    od;

    mine[c] = 0;
    if
    :: d_step { release(id[c]) }
    :: late_release = id[c]
    fi;
    goto next_attempt;
done:
    skip
}

#define COUNT_DOWN(time) time = (time > 0 -> time - 1 : 0)

proctype Time() {
    do
    :: d_step {
        COUNT_DOWN(left);
        COUNT_DOWN(mine[0]); COUNT_DOWN(mine[1]); COUNT_DOWN(mine[2]);
        COUNT_DOWN(pending[0]); COUNT_DOWN(pending[1]); COUNT_DOWN(pending[2])
       }
    od
}

proctype Network() {
    do
    :: d_step { late_release != 0 -> release(late_release); late_release = 0 }
    od
}

proctype Operator() {
    d_step { holder != 0 && token < GRANTS -> broken = holder; holder = 0; left = 0; token++ }
}

init {
    atomic { run Client(0); run Client(1); run Client(2); run Time(); run Network(); run Operator() }
}
