// Prints results: go run ./consume BOOTSTRAP TOPIC.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.ConsumeTopics(os.Args[2]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for {
		patience, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		fetches := client.PollFetches(patience)
		cancel()
		if patience.Err() == context.DeadlineExceeded && fetches.Empty() {
			return
		}
		fetches.EachRecord(func(record *kgo.Record) {
			for _, header := range record.Headers {
				if header.Key == "type" {
					fmt.Println(string(header.Value), string(record.Value))
				}
			}
		})
	}
}
