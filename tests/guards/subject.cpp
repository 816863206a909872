// A child for `holdfast run` that behaves in one of several awkward ways. Every process of it keeps a file
// named by its pid in the folder ROSTER, and writes the time into it as long as it lives and runs.
//
// subject ROSTER obey|ignore|deaf|default|fork|daemon|heir|headless|stop|apart|zombie|closed|pipe
// subject ROSTER exit N, subject ROSTER die N, subject ROSTER background|leave, subject ROSTER stopped N

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <initializer_list>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

std::string roster;

/// Lives for a minute, which is longer than any test and short enough to leave nothing behind.
[[noreturn]] void live(bool writes_to_pipe = false) {
    const std::string path = roster + "/" + std::to_string(getpid());
    // Written under another name first: a reader that finds the file finds a time in it.
    const int file = open((path + ".new").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool announced = false;
    for (const auto end = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < end;) {
        const auto now =
            std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
        const std::string text = std::to_string(now.count());
        if (pwrite(file, text.data(), text.size(), 0) < 0) std::exit(99);
        if (!announced) announced = rename((path + ".new").c_str(), path.c_str()) == 0;
        if (writes_to_pipe && write(STDOUT_FILENO, "x", 1) > 0) std::_Exit(95);
        std::this_thread::sleep_for(5ms);
    }
    std::_Exit(98);
}

void ignore(std::initializer_list<int> signals) {
    for (const int signal : signals) std::signal(signal, SIG_IGN);
}

/// A file `PID.WHAT` in the roster's folder says that something happened to this process.
void note(const char* what) {
    close(open((roster + "/" + std::to_string(getpid()) + "." + what).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

volatile pid_t apart = 0;

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 97;
    roster = argv[1];
    const std::string how = argv[2];
    const int number = argc > 3 ? std::atoi(argv[3]) : 0;
    if (how == "exit") return number;
    if (how == "die") {
        std::signal(number, SIG_DFL);  // A sanitizer has handlers of its own.
        raise(number);
    }
    if (how == "obey") live();
    if (how == "ignore") {
        ignore({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM});
        live();
    }
    if (how == "deaf") {
        // Hears SIGTERM, says so, and goes on.
        std::signal(SIGTERM, [](int) { note("term"); });
        live();
    }
    if (how == "default") {
        // What the caller ignores would be ignored here too.
        for (const int each : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) std::signal(each, SIG_DFL);
        live();
    }
    if (how == "stopped") {
        close(open((roster + "/" + std::to_string(getpid())).c_str(), O_WRONLY | O_CREAT, 0600));
        raise(number);
        live();
    }
    if (how == "apart") {
        // Its helper has a process group of its own and is stopped. When told to end it ends the helper, and waits.
        apart = fork();
        if (apart == 0) {
            setpgid(0, 0);
            close(open((roster + "/" + std::to_string(getpid())).c_str(), O_WRONLY | O_CREAT, 0600));
            raise(SIGSTOP);
            live();
        }
        std::signal(SIGTERM, [](int) {
            kill(apart, SIGTERM);
            while (waitpid(apart, nullptr, 0) < 0 && errno == EINTR) {
            }
            _exit(93);
        });
        live();
    }
    if (how == "fork") {
        static_cast<void>(fork());
        live();
    }
    if (how == "daemon") {
        if (fork() == 0) setsid();
        live();
    }
    if (how == "heir") {
        // The same, with a process that is deaf to all that its parent obeys.
        if (fork() == 0) {
            setsid();
            ignore({SIGTERM, SIGINT, SIGHUP});
        }
        live();
    }
    if (how == "headless") {
        // The same, with a process whose first thread has ended: the kernel shows it like one that is dead.
        if (fork() == 0) {
            setsid();
            ignore({SIGTERM, SIGINT, SIGHUP});
            std::thread([] { live(); }).detach();
            syscall(SYS_exit, 0);
        }
        live();
    }
    if (how == "background") {
        // Ends, and leaves a process behind.
        if (fork() != 0) return 0;
        live();
    }
    if (how == "leave") {
        // The same, with a process that has left the session.
        if (fork() != 0) return 0;
        setsid();
        live();
    }
    if (how == "stop") {
        if (fork() == 0) live();
        close(open((roster + "/" + std::to_string(getpid())).c_str(), O_WRONLY | O_CREAT, 0600));
        raise(SIGSTOP);
        live();
    }
    if (how == "zombie") {
        if (fork() == 0) return 0;
        live();
    }
    if (how == "closed") {
        for (int fd = 0; fd < 256; ++fd) close(fd);
        live();
    }
    if (how == "pipe") {
        ignore({SIGPIPE});
        int ends[2] = {-1, -1};
        if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0) return 94;
        close(ends[0]);
        live(true);
    }
    return 96;
}
