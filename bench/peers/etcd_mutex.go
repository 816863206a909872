// etcd_mutex PORT pairs CLIENTS MILLISECONDS: prints how many locks of their own so many clients took and gave back in a
// second, with etcd's concurrency.Mutex.
// etcd_mutex PORT handover FILE HOLDS: takes one lock again and again, in the hand-over measure, until all who do so
// have held it so many times.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"golang.org/x/sys/unix"
)

const hold = 5 * time.Millisecond // As in measures/stamps.hpp.

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

// A session is a lease, which all locks of a client share.
func session(port string) *concurrency.Session {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:" + port}})
	must(err)
	made, err := concurrency.NewSession(client)
	must(err)
	return made
}

func pairs(port string, clients int, during time.Duration) {
	sessions := make([]*concurrency.Session, clients)
	for i := range sessions {
		sessions[i] = session(port)
	}
	var count int64
	var all sync.WaitGroup
	begin := time.Now()
	for i := range sessions {
		all.Add(1)
		go func(own *concurrency.Session, prefix string) {
			defer all.Done()
			for n := 0; time.Since(begin) < during; n++ {
				mutex := concurrency.NewMutex(own, fmt.Sprintf("%s/%d", prefix, n))
				must(mutex.Lock(context.Background()))
				must(mutex.Unlock(context.Background()))
				atomic.AddInt64(&count, 1)
			}
		}(sessions[i], fmt.Sprintf("pairs/%d/%d", os.Getpid(), i))
	}
	all.Wait()
	fmt.Println(float64(count) / time.Since(begin).Seconds())
}

func now() int64 {
	var time unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_MONOTONIC, &time))
	return time.Nano()
}

func size(file *os.File) int64 {
	info, err := file.Stat()
	must(err)
	return info.Size()
}

// As in measures/stamps.hpp.
func stayAway(begun *os.File, count int64) {
	for i := 0; i < 500 && size(begun) <= count; i++ {
		time.Sleep(500 * time.Microsecond)
	}
}

func handOver(port, path string, enough int64) {
	stamps, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must(err)
	begun, err := os.OpenFile(path+".begun", os.O_WRONLY|os.O_APPEND, 0)
	must(err)
	own := session(port)
	for size(begun) < enough {
		mutex := concurrency.NewMutex(own, "handover")
		asked := now()
		must(mutex.Lock(context.Background()))
		begin := now()
		fmt.Fprint(begun, ".")
		count := size(begun)
		time.Sleep(hold)
		fmt.Fprintf(stamps, "%d %d %d\n", asked, begin, now())
		must(mutex.Unlock(context.Background()))
		stayAway(begun, count)
	}
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: etcd_mutex PORT pairs CLIENTS MILLISECONDS | etcd_mutex PORT handover FILE HOLDS")
	}
	if os.Args[2] == "pairs" {
		pairs(os.Args[1], number(os.Args[3]), time.Duration(number(os.Args[4]))*time.Millisecond)
	} else {
		handOver(os.Args[1], os.Args[3], int64(number(os.Args[4])))
	}
}
