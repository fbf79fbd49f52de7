// Prints results: node consume.mjs BOOTSTRAP TOPIC.
import { Kafka, logLevel } from "kafkajs";

const [bootstrap, topic] = process.argv.slice(2);
const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.ERROR });
const consumer = kafka.consumer({ groupId: `javascript-${topic}` }); // reads committed records only
let until = Date.now() + 20_000;
await consumer.connect();
await consumer.subscribe({ topic, fromBeginning: true });
await consumer.run({
  eachMessage: async ({ message }) => {
    console.log(message.headers.type.toString(), message.value.toString());
    until = Date.now() + 5_000;
  },
});
while (Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 200));
await consumer.disconnect();
