/* What does a guarded resource accept? One lock, its store, three clients and a resource that looks at tokens. Clients
 * stop for as long as they like, so a lease may run out at any moment and its holder writes all the same; an operator
 * breaks the lock once; the store goes back to an old copy once and grants the same tokens again. See README.md.
 *
 * Each client reads, and writes what follows from what it read. If somebody else wrote in between, that is lost.
 *
 * Renewing only puts off the end of a lease. Here the end comes whenever it likes, so renewing has nothing to add.
 *
 * Wrong on purpose: NO_FENCE, NO_SEAL, TOKEN_ONLY.
 */
#define CLIENTS 3
#define ATTEMPTS 1
#define GRANTS 4  /* Where the search ends: histories with more grants and breaks are not looked at. */

/* The store. */
byte holder;  /* The lock_id of the lease. 0: free. */
bool live;
byte token;

/* The clients. */
byte id[CLIENTS];     /* New for each attempt. */
bool fresh[CLIENTS];  /* What this client has read is still what is there. */

/* The resource. */
byte seen_token;
byte seen_id;

inline acquire(lock_id, tok, ok) {
    if
    :: holder == lock_id && live -> tok = token; ok = true
    :: holder != lock_id && (holder == 0 || !live) && token < GRANTS ->
        token++; holder = lock_id; live = true; tok = token; ok = true
    :: else -> ok = false
    fi
}

/* The resource looks at a token, and remembers the highest and whose it was. */
inline present(tok, lock_id, ok) {
#if defined(NO_FENCE)
    ok = true;
#elif defined(TOKEN_ONLY)
    ok = (tok >= seen_token);
#else
    ok = (tok > seen_token || (tok == seen_token && lock_id == seen_id));
#endif
    seen_token = (ok -> tok : seen_token);
    seen_id = (ok -> lock_id : seen_id)
}

proctype Client(byte c) {
    byte attempt = 0;
    byte tok = 0;
    bool ok = false;

next_attempt:
    atomic {
        fresh[c] = false; tok = 0; ok = false;
        if
        :: attempt < ATTEMPTS -> attempt++; id[c] = c * ATTEMPTS + attempt
        :: attempt == ATTEMPTS -> goto done
        fi
    };
ask:
    atomic { acquire(id[c], tok, ok) };
    if
    :: ok -> ok = false
    :: goto next_attempt  /* Died, or lost patience. */
    :: ok = false; goto ask  /* Refused, or the answer was lost: again, with the same lock_id. */
    fi;

#ifndef NO_SEAL
    d_step { present(tok, id[c], ok) };
    if
    :: ok -> ok = false
    :: !ok -> goto next_attempt
    fi;
#endif

work:
    fresh[c] = true;
    d_step {
        present(tok, id[c], ok);
        if
        :: ok -> assert(fresh[c]); fresh[0] = false; fresh[1] = false; fresh[2] = false
        :: else -> fresh[c] = false
        fi
    };
    if
    :: ok -> ok = false; goto work
    :: atomic { holder == id[c] -> holder = 0; live = false }; goto next_attempt  /* Released. */
    :: goto next_attempt  /* Refused, or died. */
    fi;
done:
    skip
}

proctype Time() {
    do
    :: live -> live = false
    od
}

proctype Operator() {
    d_step { holder != 0 && token < GRANTS -> holder = 0; live = false; token++ }
}

proctype Backup() {
    byte old_holder = 0; bool old_live = false; byte old_token = 0;
    d_step { old_holder = holder; old_live = live; old_token = token };
    d_step { holder = old_holder; live = old_live; token = old_token; old_holder = 0; old_live = false; old_token = 0 }
}

init {
    atomic { run Client(0); run Client(1); run Client(2); run Time(); run Operator(); run Backup() }
}
