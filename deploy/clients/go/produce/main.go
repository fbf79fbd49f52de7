// Writes JSON events to a topic: go run ./produce BOOTSTRAP TOPIC.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Event is one example: its features, its label and what to delete it by.
type Event struct {
	X  []string `json:"x"`
	Y  string   `json:"y"`
	ID int      `json:"id"`
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for n := range 100 {
		event := Event{[]string{"see", "you"}, "ham", n}
		if n%2 == 0 {
			event = Event{[]string{"win", "a", "prize"}, "spam", n}
		}
		value, _ := json.Marshal(event)
		record := &kgo.Record{Topic: os.Args[2], Key: []byte("everyone"), Value: value}
		client.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
			if err != nil {
				log.Fatal(err)
			}
		})
	}
	if err := client.Flush(context.Background()); err != nil {
		log.Fatal(err)
	}
}
