// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title RentStreams
/// @notice Pays ether continuously from a payer to a payee over an agreed number of seconds.
contract RentStreams {
    struct Stream {
        address payer;
        address payee;
        uint256 total;
        uint256 duration;
        uint256 startBlock;
        uint256 withdrawn;
        bool stopped;
    }

    uint256 public constant MIN_DURATION = 1 days;
    uint256 public constant SECONDS_PER_BLOCK = 13;

    Stream[] private streams;
    mapping(address => uint256) public refunds;

    event StreamOpened(uint256 indexed id, address indexed payer, address indexed payee, uint256 total);
    event Withdrawn(uint256 indexed id, uint256 amount);
    event StreamStopped(uint256 indexed id, uint256 refund);
    event RefundTaken(address indexed payer, uint256 amount);

    /// @notice Opens a stream with the ether sent.
    function open(address payee, uint256 duration) external payable returns (uint256 id) {
        require(payee != address(0), "zero address");
        require(msg.value > 0, "nothing sent");
        require(duration >= MIN_DURATION, "too short");
        id = streams.length;
        streams.push(Stream(msg.sender, payee, msg.value, duration, block.number, 0, false));
        emit StreamOpened(id, msg.sender, payee, msg.value);
    }

    /// @notice Pays what a stream has released so far to its payee.
    function withdraw(uint256 id) external {
        Stream storage stream = streams[id];
        require(msg.sender == stream.payee, "not payee");
        uint256 amount = releasedAmount(id) - stream.withdrawn;
        require(amount > 0, "nothing released");
        stream.withdrawn += amount;
        emit Withdrawn(id, amount);
        _pay(msg.sender, amount);
    }

    /// @notice Stops a stream; the payee keeps what was released, the payer can take the rest back.
    function stop(uint256 id) external {
        Stream storage stream = streams[id];
        require(msg.sender == stream.payer || msg.sender == stream.payee, "not a party");
        require(!stream.stopped, "already stopped");
        uint256 kept = releasedAmount(id);
        uint256 refund = stream.total - kept;
        stream.stopped = true;
        stream.total = kept;
        refunds[stream.payer] += refund;
        emit StreamStopped(id, refund);
    }

    /// @notice Pays the caller's refunds out.
    function takeRefund() external {
        uint256 amount = refunds[msg.sender];
        require(amount > 0, "no refund");
        refunds[msg.sender] = 0;
        emit RefundTaken(msg.sender, amount);
        _pay(msg.sender, amount);
    }

    /// @notice Seconds that a stream has been running.
    function elapsedSeconds(uint256 id) public view returns (uint256) {
        return (block.number - streams[id].startBlock) * SECONDS_PER_BLOCK;
    }

    /// @notice Wei that a stream has released so far, withdrawn or not.
    function releasedAmount(uint256 id) public view returns (uint256) {
        Stream storage stream = streams[id];
        uint256 elapsed = elapsedSeconds(id);
        if (stream.stopped || elapsed >= stream.duration) {
            return stream.total;
        }
        return (stream.total * elapsed) / stream.duration;
    }

    function streamAt(uint256 id) external view returns (Stream memory) {
        return streams[id];
    }

    function _pay(address to, uint256 amount) private {
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
