// Writes JSON events to a topic: node produce.mjs BOOTSTRAP TOPIC.
import { Kafka, Partitioners, logLevel } from "kafkajs";

const [bootstrap, topic] = process.argv.slice(2);
const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.ERROR });
const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
await producer.connect();
const events = Array.from({ length: 100 }, (_, id) =>
  id % 2 === 0 ? { x: ["win", "a", "prize"], y: "spam", id } : { x: ["see", "you"], y: "ham", id },
);
await producer.send({ topic, messages: events.map((event) => ({ key: "everyone", value: JSON.stringify(event) })) });
await producer.disconnect();
